"""Family: how settings and weights of transformers' models become ours, and ours theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

from npformer.core import a_type, checks, initializers
from npformer.interop.architecture import Architecture, Arrays, Settings, Weights
from npformer.interop.rotary_settings import foreign_rotary, read_rotary, their_rotary
from npformer.models import EncoderConfig

RATES = ("dropout", "attention_dropout", "ffn_dropout")
"""Our settings that are probabilities."""

OF_TRAINING = (*RATES, "token_dropout", "initializer", "memory", "padding", "mixture")
"""Our settings that change no output at evaluation."""

DERIVED = ("n_kv_heads", "d_head")
"""Our settings that follow from others if they are None."""

OF_A_FILE = (
    "torch_dtype",
    "dtype",
    "_name_or_path",
    "quantization_config",
    "transformers_version",
    "architectures",
    "id2label",
    "label2id",
    "problem_type",
)
"""Keys of config.json that describe the file that a model was read from, or its head."""


class Family(Architecture, ABC):
    """A table of ``architectures.toml``, used both ways: to read models and to write them.

    `models` are our classes of them.
    """

    models: ClassVar[tuple[type, ...]]

    # Reading --------------------------------------------------------------------------------------

    @abstractmethod
    def in_full(self, hf_config: Settings, state: Weights) -> tuple[Settings, Arrays]:
        """Return settings and weights, each of these once, under its full name.

        ValueError if two that are one array in the model differ.
        """

    @abstractmethod
    def maker(self, hf_config: Settings, state: Arrays, padding: str) -> Callable[..., Any]:
        """Return what makes a model of these settings, given `seed` and `dtype`.

        `padding` is for mixers that cannot skip it. ValueError if npformer has no such model.
        """

    def read(self, hf_config: Settings, state: Weights, padding: str = "refuse") -> Any:
        """Return the model with the weights of a folder."""
        hf_config, arrays = self.in_full(self.completed(hf_config), state)
        if not arrays:
            raise ValueError(
                f"state has {', '.join([*state][:3]) or 'nothing'}; expected the weights of a "
                f"{self.class_name()}"
            )
        checks.floating(**arrays)
        make = self.maker(hf_config, arrays, padding)
        # Drawing a hundred million weights takes seconds, and a file may state any size.
        most = 4 * sum(array.size for array in arrays.values()) + (1 << 20)
        dtype = next(iter(arrays.values())).dtype.name
        try:
            model = make(seed=initializers.undrawn(most), dtype=dtype)
        except ValueError as error:
            raise ValueError(
                f"hf_config does not fit state: {error}; expected equal sizes"
            ) from error
        self.load(model, arrays)
        return model

    def completed(self, hf_config: Settings) -> dict[str, Any]:
        """Return a config.json with the usual values of what it leaves out."""
        advice = "Write model.config.to_dict(), or json.load of config.json"
        checks.instance("hf_config", hf_config, Mapping, advice)
        left_out = {k: v for k, v in self.defaults.items() if hf_config.get(k) is None}
        return {**hf_config, **left_out}

    def our_settings(self, given: Settings, side: str = "") -> dict[str, Any]:
        """Return our settings; ValueError for what npformer does not support."""
        names = self.names_of_settings(side)
        keys = [*(key for name, key in names.items() if name not in DERIVED), "vocab_size"]
        for key in keys:
            if key not in given:
                raise ValueError(f"hf_config has no {key!r}; expected all of {', '.join(keys)}")
        checks.positive("vocab_size", given["vocab_size"])
        ours = {name: self._our_setting(name, key, given.get(key)) for name, key in names.items()}
        same = {key: given[other] for key, other in self.same.items()}
        for key, value in {"model_type": self.model_type, **self.only, **same}.items():
            if given.get(key) is not None and given[key] != value:
                raise ValueError(
                    f"hf_config has {key} = {given[key]!r}; expected {value!r}, all that npformer "
                    "supports"
                )
        layers = read_rotary(self, given, ours) if self.thetas else {}
        return ours | layers | dict(self.fixed)

    def _our_setting(self, ours: str, theirs: str, value: Any) -> Any:
        """Check a setting's value under their name, and return it as ours."""
        if value is None and ours in DERIVED:
            return None
        if ours == "activation":
            checks.choice(theirs, value, self.activations, hint=False)
            return self.activations[value]
        if ours in RATES:
            checks.rate(theirs, value)
        elif ours == "norm_eps":
            checks.number(theirs, value, above=0.0)
        else:
            return checks.positive(theirs, value)
        return float(value)

    def names_of_settings(self, side: str = "") -> dict[str, str]:
        """Return {our setting: their key}, for the encoder or the decoder if these differ."""
        return {ours: theirs.format(side=side) for ours, theirs in self.settings.items()}

    # Writing --------------------------------------------------------------------------------------

    @abstractmethod
    def foreign(self, model: Any) -> list[str]:
        """Return descriptions of what a model has and the family has not."""

    @abstractmethod
    def settings_of(self, model: Any, before: Settings) -> dict[str, Any]:
        """Return the settings as config.json has them; `before` is what it came with."""

    def config_of(self, model: Any, before: Settings) -> dict[str, Any]:
        """Return the content of config.json; ValueError if transformers has no such model."""
        self.check_fits(model)
        before = {key: value for key, value in before.items() if key not in OF_A_FILE}
        own = {"architectures": [self.class_name()], "dtype": model.dtype}
        return before | self.settings_of(model, before) | own

    def check_fits(self, model: Any) -> None:
        """Raise ValueError if a model has something that the family has not."""
        if not isinstance(model, self.models):
            expected = " or ".join(kind.__name__ for kind in self.models)
            raise TypeError(f"model is {a_type(model)}; expected a {expected}")
        if found := self.foreign(model):
            raise ValueError(
                f"transformers' {self.class_name()} cannot hold this model: it has "
                f"{', '.join(found)}. npformer.save writes any model"
            )

    def foreign_settings(self, config: EncoderConfig) -> list[str]:
        """Return descriptions of the settings that differ from those of the family."""
        differences = self._other_than_fixed(config)
        if config.activation not in self.activations.values():
            differences.append(f"activation = {config.activation!r}")
        differences += self._other_than_default(config)
        if config.position_padding_id is not None and not self.positions_after_padding:
            differences.append(f"position_padding_id = {config.position_padding_id}")
        if "n_token_types" in self.settings and config.n_token_types == 0:
            differences.append("n_token_types = 0")
        if self.thetas:
            differences += foreign_rotary(self, config)
        return differences

    def _other_than_fixed(self, config: EncoderConfig) -> list[str]:
        """Return descriptions of the settings that all models of the family have otherwise."""
        differences = []
        for name, expected in self.fixed.items():
            value = getattr(config, name)
            same = set(config.mixers()) == {expected} if name == "mixer" else value == expected
            if not same:
                differences.append(f"{name} = {value!r} (expected {expected!r})")
        return differences

    def _other_than_default(self, config: EncoderConfig) -> list[str]:
        """Return descriptions of the settings that the family does not have, and a model has."""
        known = {*self.fixed, *self.settings, "position_padding_id"}.union(OF_TRAINING)
        differences = []
        for setting in fields(config):
            default, value = setting.default, getattr(config, setting.name)
            size_or_rate = not (default is None or isinstance(default, str | bool))
            if setting.name not in known and not size_or_rate and value != default:
                differences.append(f"{setting.name} = {value!r} (expected {default!r})")
        return differences

    def their_settings(self, config: EncoderConfig, side: str = "") -> dict[str, Any]:
        """Return the settings as config.json has them."""
        keys = self.names_of_settings(side)
        written = {theirs: getattr(config, ours) for ours, theirs in keys.items()}
        if "n_kv_heads" in keys:
            sizes = config.mixer_settings()
            written |= {keys["n_kv_heads"]: sizes.kv_heads, keys["d_head"]: sizes.head_size}
        names = {ours: theirs for theirs, ours in reversed([*self.activations.items()])}
        own = {"model_type": self.model_type, keys["activation"]: names[config.activation]}
        return written | own | (their_rotary(self, config) if self.thetas else {})
