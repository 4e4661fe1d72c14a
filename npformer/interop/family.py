"""Family: convert settings and weights from transformers' models to ours, and back."""

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
"""Our settings that are dropout rates."""

TRAINING_SETTINGS = (*RATES, "token_dropout", "initializer", "memory", "padding", "mixture")
"""Our settings that do not affect the outputs at evaluation."""

DERIVED = ("n_kv_heads", "d_head")
"""Our settings that follow from others if they are None."""

FILE_SETTINGS = (
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
    """A family of transformers' models, which npformer reads and writes.

    `models` are our classes for them.
    """

    models: ClassVar[tuple[type, ...]]

    # Reading --------------------------------------------------------------------------------------

    @abstractmethod
    def standardize(self, hf_config: Settings, state: Weights) -> tuple[Settings, Arrays]:
        """Return the settings, and the weights, each once and under its full name.

        ValueError if a file has an array of the model under two names, and the two differ.
        """

    @abstractmethod
    def model_factory(self, hf_config: Settings, state: Arrays, padding: str) -> Callable[..., Any]:
        """Return a function of `seed` and `dtype` that makes a model of these settings.

        `padding` is for mixers that cannot skip padding. ValueError if npformer has no such model.
        """

    def read(self, hf_config: Settings, state: Weights, padding: str = "refuse") -> Any:
        """Return the model with the weights of a folder."""
        hf_config, arrays = self.standardize(self.fill_defaults(hf_config), state)
        if not arrays:
            raise ValueError(
                f"state has {', '.join([*state][:3]) or 'nothing'}; expected the weights of a "
                f"{self.class_name()}"
            )
        checks.floating(**arrays)
        make_model = self.model_factory(hf_config, arrays, padding)
        # Drawing a hundred million weights takes seconds, and hf_config may have any size.
        most = 4 * sum(array.size for array in arrays.values()) + (1 << 20)
        dtype = next(iter(arrays.values())).dtype.name
        try:
            model = make_model(seed=initializers.undrawn(most), dtype=dtype)
        except ValueError as error:
            raise ValueError(
                f"hf_config does not fit state: {error}; expected equal sizes"
            ) from error
        self.load(model, arrays)
        return model

    def fill_defaults(self, hf_config: Settings) -> dict[str, Any]:
        """Return the content of config.json, with default values for keys that it leaves out."""
        advice = "Write model.config.to_dict(), or json.load of config.json"
        checks.instance("hf_config", hf_config, Mapping, advice)
        settings = dict(hf_config)
        for key, default in self.defaults.items():
            if settings.get(key) is None:
                settings[key] = default
        return settings

    def our_settings(self, hf_config: Settings, side: str = "") -> dict[str, Any]:
        """Return our settings; ValueError for settings that npformer does not support."""
        names = self.names_of_settings(side)
        keys = [*(key for name, key in names.items() if name not in DERIVED), "vocab_size"]
        for key in keys:
            if key not in hf_config:
                raise ValueError(f"hf_config has no {key!r}; expected all of {', '.join(keys)}")
        checks.positive("vocab_size", hf_config["vocab_size"])
        ours = {}
        for name, key in names.items():
            ours[name] = self._our_setting(name, key, hf_config.get(key))
        only_values = {"model_type": self.model_type, **self.only}
        only_values |= {key: hf_config[other] for key, other in self.same.items()}
        for key, value in only_values.items():
            if hf_config.get(key) is not None and hf_config[key] != value:
                raise ValueError(
                    f"hf_config has {key} = {hf_config[key]!r}; expected {value!r}, all that "
                    "npformer supports"
                )
        if self.thetas:
            ours |= read_rotary(self, hf_config, ours)
        return ours | dict(self.fixed)

    def _our_setting(self, ours: str, theirs: str, value: Any) -> Any:
        """Return our value of one of their settings, after checking it."""
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
        """Return {our setting: their key}; `side` is encoder or decoder, if their keys differ."""
        return {ours: theirs.format(side=side) for ours, theirs in self.settings.items()}

    # Writing --------------------------------------------------------------------------------------

    @abstractmethod
    def foreign(self, model: Any) -> list[str]:
        """Return descriptions of what a model has and the family does not have."""

    @abstractmethod
    def settings_of(self, model: Any, before: Settings) -> dict[str, Any]:
        """Return the settings as config.json has them.

        `before` are the settings of the folder that the model came from.
        """

    def config_of(self, model: Any, before: Settings) -> dict[str, Any]:
        """Return the content of config.json; ValueError if transformers has no such model."""
        self.check_fits(model)
        before = {key: value for key, value in before.items() if key not in FILE_SETTINGS}
        settings = before | self.settings_of(model, before)
        return settings | {"architectures": [self.class_name()], "dtype": model.dtype}

    def check_fits(self, model: Any) -> None:
        """Raise ValueError if a model has something that the family does not have."""
        if not isinstance(model, self.models):
            expected = " or ".join(model_class.__name__ for model_class in self.models)
            raise TypeError(f"model is {a_type(model)}; expected a {expected}")
        differences = self.foreign(model)
        if differences:
            raise ValueError(
                f"transformers' {self.class_name()} cannot hold this model: it has "
                f"{', '.join(differences)}. npformer.save writes any model"
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
        """Return descriptions of settings that differ from the fixed ones of the family."""
        differences = []
        for name, expected in self.fixed.items():
            value = getattr(config, name)
            same = set(config.mixers()) == {expected} if name == "mixer" else value == expected
            if not same:
                differences.append(f"{name} = {value!r} (expected {expected!r})")
        return differences

    def _other_than_default(self, config: EncoderConfig) -> list[str]:
        """Return descriptions of settings without a default value that the family does not have."""
        known = {*self.fixed, *self.settings, "position_padding_id"}.union(TRAINING_SETTINGS)
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
        settings = {theirs: getattr(config, ours) for ours, theirs in keys.items()}
        if "n_kv_heads" in keys:
            sizes = config.mixer_settings()
            settings[keys["n_kv_heads"]] = sizes.kv_heads
            settings[keys["d_head"]] = sizes.head_size
        settings["model_type"] = self.model_type
        settings[keys["activation"]] = self.their_activations()[config.activation]
        if self.thetas:
            settings |= their_rotary(self, config)
        return settings

    def their_activations(self) -> dict[str, str]:
        """Return {our name of an activation: their first name of it}."""
        return {ours: theirs for theirs, ours in reversed([*self.activations.items()])}
