"""What other libraries call things, and what they are called here.

The one table of names that people bring from Keras, PyTorch, scikit-learn, Hugging Face, fastText
and Lightning. Functions, estimators, models, the module `npformer` and the command line ask it.
"""

from collections.abc import Iterable

from npformer.core.support.wording import did_you_mean

ARGUMENTS = """
d_model: hidden_size embed_dim embedding_dim n_embd dim hidden_dim model_dim
n_layers layers: num_layers num_hidden_layers num_encoder_layers n_layer depth num_blocks
n_heads heads: nhead num_heads num_attention_heads n_head
n_kv_heads kv_heads: num_key_value_heads
d_ff: dim_feedforward intermediate_size ff_dim ffn_dim mlp_dim n_inner
max_len: max_position_embeddings max_length max_seq_length sequence_length block_size n_positions
n_classes: num_labels num_classes n_labels
n_features: input_size in_features input_dim
vocab_size: num_embeddings max_features num_words input_dim max_tokens
padding_id: padding_idx pad_token_id
dtype: torch_dtype
dropout: dropout_rate drop_rate hidden_dropout_prob
attention_dropout: attention_probs_dropout_prob attn_dropout
activation: hidden_act act_fn
norm: norm_first
norm_eps eps: layer_norm_eps layer_norm_epsilon epsilon adam_epsilon
positions: position_embedding_type
causal: is_decoder is_causal
mask: attention_mask key_padding_mask src_key_padding_mask padding_mask decoder_attention_mask
types: token_type_ids
data: x X inputs train_data train_dataset train_dataloaders training_data
validation validation_fraction: validation_data validation_split eval_dataset val_dataloaders
epochs max_iter: num_epochs n_epochs max_epochs num_train_epochs epoch n_iter
lr learning_rate: learning_rate_init eta0 initial_lr
patience n_iter_no_change: early_stopping_patience early_stopping_rounds
seed random_state: random_seed
workers n_jobs: num_workers thread num_proc
progress verbose: enable_progress_bar disable_tqdm show_progress
batch_size: per_device_train_batch_size train_batch_size minibatch_size
metric: metrics scoring metric_for_best_model eval_metric monitor
loss: criterion loss_fn loss_function
optimizer: optim optimizers
schedule: scheduler lr_scheduler lr_scheduler_type warmup_steps warmup_ratio
clip_norm: max_grad_norm gradient_clip_val clipnorm global_clipnorm
accumulate: gradient_accumulation_steps accumulate_grad_batches
label_smoothing: label_smoothing_factor
class_weight: class_weights weight
sample_weight: sample_weights
checkpoint out: output_dir default_root_dir checkpoint_dir save_dir
resume: resume_from_checkpoint ckpt_path
precision: fp16 bf16 mixed_precision
callbacks: callback
backend: device accelerator
ngrams: ngram_range wordNgrams word_ngrams
min_count: min_df minCount
lower: lowercase do_lower_case
members: n_estimators
pretrained from: pretrained_model_name_or_path model_name_or_path base_model pretrainedVectors
n: max_new_tokens max_tokens max_length
stop: eos_token_id stop_strings
never: suppress_tokens bad_words_ids
beams: num_beams beam_width
"""
"""Names of arguments and options here, before the colon, and what others call them."""

COMMANDS = """
train: fit supervised fine-tune finetune
pretrain: skipgram cbow train_unsupervised
evaluate: eval test validate score
predict: predict-prob predict_proba classify infer
generate: sample complete
look: inspect visualize explain attention
doctor: info env
"""
"""Commands here, before the colon, and what others call them."""

METHODS = {
    "fit": "Write npformer.fit(model, (x, y))",
    "train": "npformer.fit(model, (x, y)) trains; nothing has to be switched on for it",
    "eval": "A call, predict and evaluate never drop anything: nothing has to be switched off",
    "compile": "Nothing has to be compiled: loss, optimizer and metric are arguments of fit",
    "cuda": "Write model.to('cupy')",
    "cpu": "Write model.to('numpy')",
    "evaluate": "Write npformer.evaluate(model, (x, y))",
    "score": "Write npformer.evaluate(model, (x, y)).accuracy",
    "save": "Write npformer.save(model, path)",
    "save_weights": "Write npformer.save(model, path)",
    "save_model": "Write npformer.save(model, path)",
    "save_pretrained": "Write npformer.interop.save_pretrained(model, folder)",
    "load": "Write model = npformer.load(path)",
    "load_weights": "Write model = npformer.load(path)",
    "load_state_dict": "Write model = npformer.load(path)",
    "state_dict": "model.parameters() has the arrays; npformer.save writes the whole model",
    "get_weights": "model.parameters() has the arrays",
    "zero_grad": "model.loss_and_gradients(x, y) returns new gradients: none are left over",
    "requires_grad_": "Write model.freeze('embed.*')",
    "summary": "Write print(npformer.summary(model))",
    "count_params": "Write model.n_parameters()",
    "num_parameters": "Write model.n_parameters()",
    "predict_proba": "Write model.predict_probabilities(x)",
    "history": "npformer.fit returns the history",
}
"""Methods of other libraries' models, and what to write here instead."""

PLACES = """
npformer.Adam: AdamW
npformer.Decoder: TransformerDecoder
npformer.DecoderBlock: TransformerDecoderLayer
npformer.Encoder: TransformerEncoder
npformer.Encoder, npformer.EncoderDecoder or npformer.LanguageModel: Transformer
npformer.EncoderBlock: TransformerEncoderLayer TransformerBlock
npformer.EncoderConfig: BertConfig AutoConfig PretrainedConfig
npformer.Layer: Module nn
npformer.LanguageModel: GPT GPT2LMHeadModel
npformer.Model: LightningModule
npformer.TextClassifier: pipeline train_supervised
npformer.TextFiller: train_unsupervised
npformer.asarray: tensor Tensor as_tensor
npformer.clip_by_global_norm: clip_grad_norm_
npformer.evaluate(model, (x, y)): test validate accuracy_score confusion_matrix
npformer.fit(model, (x, y)): Trainer TrainingArguments compile
npformer.fit(model, (x, y), batch_size=32): DataLoader TensorDataset
npformer.fit(model, (x, y), checkpoint=folder): ModelCheckpoint
npformer.fit(model, (x, y), patience=3, validation=0.1): EarlyStopping
npformer.fit(model, (x, y), validation=0.1): train_test_split
npformer.from_pretrained: AutoModel BertModel AutoModelForSequenceClassification
npformer.functional.mean_squared_error: mse_loss
npformer.functional.softmax_cross_entropy: cross_entropy nll_loss
npformer.interop.tokenizers.read_tokenizer: AutoTokenizer
npformer.layers.LayerNorm: LayerNormalization
npformer.layers.Linear: Dense
npformer.layers.Positions: PositionalEncoding
npformer.load: load_model load_weights
npformer.losses.BinaryCrossEntropy: BCEWithLogitsLoss BinaryCrossentropy
npformer.losses.MeanSquaredError: MSELoss
npformer.losses.SoftmaxCrossEntropy: CrossEntropyLoss CategoricalCrossentropy \
SparseCategoricalCrossentropy
npformer.mixers.Attention: MultiheadAttention MultiHeadAttention SelfAttention
npformer.optim.cosine: CosineAnnealingLR CosineDecay
npformer.save: save_model save_weights
npformer.sklearn.EncoderClassifier: EncoderClassifier
npformer.summary(model): plot_model
"""
"""What to write, before the colon, for names that other libraries have at their top."""


def _pairs(table: str) -> list[tuple[list[str], list[str]]]:
    """Return the names here and the names elsewhere of each line."""
    lines = [line.rpartition(": ") for line in table.strip().splitlines()]
    return [(here.split(), elsewhere.split()) for here, _, elsewhere in lines]


def _place_of_names() -> dict[str, str]:
    lines = [line.rpartition(": ") for line in PLACES.strip().splitlines()]
    return {name: here for here, _, elsewhere in lines for name in elsewhere.split()}


_ARGUMENTS, _COMMANDS, _PLACES = _pairs(ARGUMENTS), _pairs(COMMANDS), _place_of_names()


def place_of(name: str) -> str | None:
    """Return what to write for a name that other libraries have at their top, if it is known."""
    return _PLACES.get(name)


def argument_here(word: str, known: Iterable[str]) -> str | None:
    """Return the one of the `known` arguments that other libraries call `word`, if there is one."""
    return _name_here(word, [*known], _ARGUMENTS)


def suggest_argument(word: str, known: Iterable[str]) -> str:
    """Return ``". Did you mean 'x'?"`` for another library's name, or a word that is close."""
    return _suggest(word, [*known], _ARGUMENTS)


def suggest_command(word: str, known: Iterable[str]) -> str:
    """Return ``". Did you mean 'x'?"`` for another program's command, or a word that is close."""
    return _suggest(word, [*known], _COMMANDS)


def _suggest(word: str, known: list[str], pairs: list[tuple[list[str], list[str]]]) -> str:
    here = _name_here(word, known, pairs)
    return did_you_mean(word, known) if here is None else f". Did you mean {here!r}?"


def _name_here(word: str, known: list[str], pairs: list[tuple[list[str], list[str]]]) -> str | None:
    if word in known:
        return word
    lines = [here for here, elsewhere in pairs if word in here or word in elsewhere]
    return next((name for here in lines for name in here if name in known), None)
