"""The rules of family 1, for 1.py."""
import re

L, O, M, P, F = "src/attlas/layers/", "src/attlas/ops/", "src/attlas/models/", "src/attlas/patterns/", "src/attlas/reference/"
MINE = [L, O, M, P, F]
REC, AN, EX, TR = "src/attlas/recording/", "src/attlas/analysis/", "src/attlas/export/", "src/attlas/recording/torch_functions/"
T = "tests/"
RULES = []


def R(old, new, **options):
    RULES.append({"old": old, "new": new, **options})


def stay(old, **options):
    R(old, old, **options)


# ---- slots → keys ---------------------------------------------------------------------------
R("slots", "key_positions", where="bare", defs="^_Looked$", i=[AN + "alignment.py"])
R("slots", "key_range", where="bare", defs="^View", i=["src/attlas/explorer/maps.py"])
R("slots", "key_positions", where="attr", i=[AN + "alignment.py"])
R("slots", "vectors", where="attr", i=[AN + "value_norms/", T + "analysis/test_norms.py"])
R("slots", "vectors", defs="_without_junk", i=[AN + "value_norms/__init__.py"])
R("slots", "vectors", i=[AN + "value_norms/inputs.py"])
R("slots", "keys", i=[TR + "provenance.py", TR + "softmax.py", TR + "weights.py"])
R("slots", "positions", defs="^_Distance|distance", i=[REC + "maps/reductions.py"])
R("slots", "key_range", defs="Pooled", i=[REC + "maps/reductions.py"])
R("slots", "indices", defs="Top|top|Greatest|greatest", i=[REC + "maps/reductions.py"])
R("slots", "key_range", defs="^_fringes_of$|^_seen$|_scores|^_scored|_computed|_block", i=[REC + "maps/factored.py"])
R("slots", "key_range", defs="^pooled$|\\.pooled$", i=[REC + "maps/statistics.py", REC + "maps/base.py"])
R("slots", "num_keys", defs="^axes_of$", i=[REC + "trace.py"])
R("slots", "keys", i=[REC + "trace.py", "src/attlas/jobs/drawing.py"])
R("slots", "keys", where="attr", base=".*axes", i=["src", T])
R("slots", "key_range", where="attr", base="view|self", defs="View|Excerpt|Tile", i=["src/attlas/explorer/maps.py"])
R("slots", "key_range", where="attr", base="view", i=["src/attlas/explorer/maps.py"])
R("slots", "positions", defs="_distance|_with_mark", i=[EX + "onnx/attention.py"])
R("slots", "mask", i=[EX + "onnx/layers.py"])
R("slots", "kept_keys", where="bare", defs="spread|_cleared", i=[M + "transformer/state.py"])
R("slots", "indices", where="bare", defs="choose", i=[O + "cache.py"])
R("slots", "positions", where="bare", defs="^banded_attention$", i=[O + "banded.py"])
R("slots", "max_length", i=[O + "lstm.py"])
R("slots", "num_keys", i=["src"])
R("slots", "num_keys", where="attr", i=[T, "benchmarks", "scripts"])
R("slots", "num_keys", i=[T + "support/mechanisms.py"])
R("all_seen", "sees_all", i=[L])

# ---- real → token_mask ----------------------------------------------------------------------
stay("real", where="attr", base="turned")
stay("real", where="attr", i=[T + "layers/test_positions.py"])
stay("real", where="attr", base="\\)", i=[T + "recording/test_observe.py"])
R("real", "lengths", defs="LocalPredictive.centre", where="bare", i=[L + "local.py"])
R("real", "token_mask", i=["src"])
R("real", "token_mask", where="attr", i=[T, "benchmarks", "scripts"])
R("real", "token_mask", where="kw", x=[T + "data", T + "cli", T + "benchmarks"])
R("real", "token_mask", i=[T + "support/", T + "layers/", T + "ops/", T + "models/", T + "decoding/", T + "export/", T + "referees/",
                          T + "analysis/", T + "recording/", T + "gpu/", T + "training/", T + "corpus_statistics/", T + "data/", T + "inference/"])
R("source_real", "source_mask")
R("target_real", "target_mask")
R("wanted_real", "wanted_mask")
R("real_of", "token_mask_of")
R("check_real", "check_token_mask")
R("_all_real", "_full_token_mask")
R("Real", "TokenMask", i=[M + "classifier.py"])
R("_real_ends", "_token_ends")

# ---- seen → allowed -------------------------------------------------------------------------
stay("seen", i=[AN + "description.py"])
R("seen", "allowed_parts", where="bare", defs="^_of_all$", i=[AN + "similarity.py"])
R("seen", "log_coverage", i=["src/attlas/decoding/scoring.py"])
R("seen", "key_mask", where="method", i=[EX + "onnx/layers.py", EX + "onnx/models.py"])
R("seen", "mask", i=[EX + "onnx/attention.py", EX + "onnx/layers.py", EX + "onnx/models.py"])
stay("seen", i=["src/attlas/figures", EX, "src/attlas/cli", "src/attlas/data", "src/attlas/explorer", "src/attlas/training", "src/attlas/inference", "src/attlas/jobs"])
stay("seen", where="attr", base="self|here", i=[TR])
stay("seen", where="bare", i=[REC + "generation.py"], defs="^beside$|^_newest")
R("seen", "mask_spec", where="any", base="seen", i=[TR + "kernels.py"])
R("seen", "mask_spec", i=[TR + "transformers.py"], where="bare", notdefs="^xx$")
R("seen", "mask_spec", i=[TR + "kernels.py"], where="bare", defs="^_reading|reading_of|^attention_reading|^factored|read")
stay("seen", where="bare", i=[TR + "provenance.py"], defs="lift|raise|margin")
R("seen", "allowed", where="method", i=[L, M, T + "layers/", T + "recording/test_intervene.py", T + "support/mechanisms.py", O])
R("seen", "allowed_rows", where="attr", base="reading|row|self|one|together|alone|\\)|\\]|.*\\.reading", i=[REC, AN, "src/attlas/corpus_statistics/", T + "recording/", T + "corpus_statistics/", T + "analysis/"],
  notdefs="^Block|^AttentionRows|^Rows|^Fringe")
R("seen", "allowed_rows", where="method", i=[REC + "maps/base.py", REC + "maps/dense.py", REC + "maps/factored.py"])
R("seen", "allowed", where="attr", base="rows|block|part|fringe|self|past|strips", x=[T + "ops", "benchmarks", T + "benchmarks", T + "data", T + "training"])
R("seen", "allowed", where="attr", base="(.*\\.)?rows", i=[AN])
R("seen", "allowed", where="bare", i=["src"])
R("seen_of", "allowed_of")
R("seen_by", "allowed_by", i=[REC])
R("_seen", "_allowed_in", i=[REC + "maps/factored.py"])
R("_seen", "_allowed", i=[L + "functional.py"])
R("_seen_by_all", "_allowed_by_all")
R("Seen", "Allowed", i=["src", T])

# ---- first → query_offset -------------------------------------------------------------------
R("first", "key_offset", where="kw", callee="remember|project_kv")
R("first", "key_offset", defs="MultiHead.remember$", i=[L + "multihead.py"])
R("width", "embed_dim", i=[F + "sinusoidal.py"])
R("first", "offset", i=[L + "positional.py", F + "rotary.py", T + "layers/test_positions.py"])
R("first", "offset", where="bare", i=[T + "referees/test_marian.py"])
R("first", "offset", where="kw", callee="rotary|sinusoidal|positions")
R("first", "query_offset", i=[L + "base.py", L + "scaled_dot_product.py", L + "functional.py", L + "local.py", L + "_arrays.py", O + "attention.py",
                              O + "banded.py", P + "base.py", F + "luong.py", F + "patterns.py", M + "rnn/decoder.py",
                              REC + "serialization.py", TR + "masks.py", AN + "_padding.py", "src/attlas/figures/bars.py",
                              "src/attlas/corpus_statistics/table.py", REC + "maps/blocks.py", TR + "transformers.py", TR + "kernels.py"])
stay("first", where="bare", nokw=True, defs="^_put_together$", i=[REC + "dense_generation.py"])
R("first", "query_offset", i=[REC + "dense_generation.py"])
stay("first", where="bare", defs="^_own_or|^_first_alike|^_parents|^_alike", i=[REC + "generation.py"])
R("first", "query_offset", i=[REC + "maps/dense.py"])
R("first", "query_offset", i=[REC + "maps/factored.py"], notdefs="^_reach_of$|^_seen_by_all$")
R("first", "query_offset", i=[AN + "description.py"], defs="^impression_of$")
R("first", "query_offset", i=[AN + "roles/scores.py"])
R("first", "query_offset", i=["src/attlas/explorer/maps.py"], where="kw")
R("first", "query_offset", where="kw", callee="replace|FactoredReading|DenseReading|Piece|Sight|mask", i=["src"])
R("first", "query_offset", where="attr", base="(.*\\.)?(reading|step|call|whole|row|sight|block|one|seen|pieces)|\\]|\\)", i=[REC], x=[TR + "origins.py", TR + "weights.py"])
stay("first", where="callattr")
R("first", "query_offset", where="attr", i=[REC + "generation.py"])
R("first", "query_offset", where="bare", i=[REC + "generation.py"], defs="^_from$|^Piece$|whole|reading|_joined|_all")
R("first", "query_offset", where="attr", base="reading|sight|scene|layout|s|\\]|self", i=[T + "layers/", T + "recording/", T + "referees/", T + "support/mechanisms.py"],
  x=[T + "recording/test_foreign.py"])
R("first", "query_offset", where="kw", i=[T + "layers/", T + "ops/", T + "patterns/", T + "recording/", T + "referees/", T + "reference/", T + "figures/", T + "gpu/",
                                          T + "support/", T + "analysis/test_norms.py", T + "analysis/test_rollout.py", T + "analysis/test_similarity.py", T + "analysis/test_roles.py",
                                          T + "corpus_statistics/", T + "explorer/", T + "models/"], x=[T + "ops/test_cache.py"])
R("first", "query_offset", where="bare", i=[T + "support/mechanisms.py", T + "layers/test_attend.py", T + "layers/test_contract.py", T + "reference/test_patterns.py", T + "patterns/test_shapes.py",
                                            T + "ops/test_banded.py", T + "ops/test_math_attention.py", T + "analysis/test_roles.py", T + "referees/test_reference.py"])

# ---- sizes ----------------------------------------------------------------------------------
# settings and constructors, by keyword
CONFIGS = "TransformerConfig|RecurrentConfig|ClassifierConfig|BlockConfig|small|small_classifier|config|sizes|settings|dict|changed|model_copy|small_config|LocalConfig|run_of|made|tiny|transformer|recurrent|replaced|classifier_config|with_|model_of|built|build"
HFX = ["tests/recording/test_huggingface.py", "tests/support/small_models.py"]
for old, new in {
    "width": "embed_dim", "heads": "num_heads", "hidden": "hidden_dim", "embedding": "embed_dim", "longest": "max_positions",
    "norm": "norm_type", "wiring": "decoder", "placement": "norm", "feedforward": "ffn_dim", "encoder_hidden": "encoder_hidden_dim",
    "attention_hidden": "attention_hidden_dim", "readout_hidden": "readout_dim", "tied_output": "tie_output", "tied_source": "tie_source",
    "key_heads": "num_kv_heads", "feedforward_dropout": "ffn_dropout",
}.items():
    R(old, new, where="kw", callee="TransformerConfig|RecurrentConfig|ClassifierConfig|BlockConfig|small|small_classifier")
    R(old, new, where="attr", base="(.*\\.)?(config|CONFIG|local_config)")
R("head_width", "head_dim")
R("key_heads", "num_kv_heads", x=HFX)
R("value_width", "value_dim")
R("query_width", "query_dim")
R("source_width", "source_dim", i=[M, T + "models/test_rnn"])
R("source_width", "key_dim")
R("encoder_hidden", "encoder_hidden_dim")
R("attention_hidden", "attention_hidden_dim")
R("readout_hidden", "readout_dim")
R("_attention_hidden", "_attention_hidden_dim")
R("tied_output", "tie_output")
R("tied_source", "tie_source")
R("placement", "norm", i=[M, EX])
R("wiring", "decoder", i=[M])
R("feedforward_dropout", "ffn_dropout")
R("check_widths", "check_dims")
R("widths", "dims", i=[L + "base.py"])
R("widths", "input_dims", i=[M + "rnn/bahdanau.py"])
R("width", "dim", i=[L + "base.py"])
# layers
R("width", "embed_dim", i=[L + "multihead.py"], notbase="positions")
R("width", "head_dim", where="attr", base="positions", i=[L + "multihead.py"])
stay("heads", defs="MultiHead.split$", where="bare", i=[L + "multihead.py"])
R("heads", "num_heads", i=[L + "multihead.py"])
R("width", "head_dim", defs="RotaryPositions", i=[L + "positional.py"])
R("width", "embed_dim", defs="SinusoidalPositions|LearnedPositions", i=[L + "positional.py"])
R("width", "dim", i=[L + "positional.py"])
R("longest", "max_positions", i=[L + "positional.py"])
R("longest", "max_positions", where="attr", base="(.*\\.)?positions")
R("longest", "max_positions", where="attr", base="(.*\\.)?model", x=["benchmarks", "scripts"])
R("longest", "max_positions", i=[M + "encoder_decoder.py", M + "classifier.py", M + "transformer/model.py", M + "transformer/config.py"])
R("longest", "max_positions", where="any", i=[T + "support/table_model.py"])
R("hidden", "hidden_dim", i=[L + "additive.py", L + "multiplicative.py", L + "local.py"])
R("width", "head_dim", i=[L + "functional.py", L + "_arrays.py", O + "attention.py"])
R("width", "span", where="attr", i=[O + "banded.py"])
R("span", "reach", defs="^band_pays|^_block", i=[O + "banded.py"])
R("width", "head_dim", i=[O + "banded.py"])
R("width", "dim", i=[O])
# models
R("width", "embed_dim", i=[M + "transformer/config.py", M + "transformer/model.py"])
R("heads", "num_heads", i=[M + "transformer/config.py"])
R("feedforward", "ffn_dim", i=[M + "transformer/config.py"])
R("norm", "norm_type", i=[M + "transformer/config.py"])
R("norm", "norm_type", where="bare", defs="Residual.__init__", i=[M + "transformer/block.py"])
R("norm", "norm_type", where="kw", callee="Residual")
R("placement", "norm", where="kw", callee="Residual")
R("normalisation", "make_norm")
R("kind", "norm_type", defs="^normalisation$", i=[M + "transformer/block.py"])
R("width", "length", defs="^by_length$", i=[M + "transformer/block.py"])
R("width", "embed_dim", i=[M + "transformer/block.py", M + "classifier.py"])
R("hidden", "ffn_dim", defs="FeedForward", i=[M + "transformer/block.py"])
R("width", "feature_dim", defs="^Output", i=[M + "embedding.py"])
R("embedding", "embed_dim", defs="^Output.__init__", i=[M + "embedding.py"])
R("vocabulary", "vocab_size", defs="^Output.__init__", i=[M + "embedding.py"])
R("tied", "tie", defs="^Output.__init__", i=[M + "embedding.py"])
R("tied", "tie", where="kw", callee="Output")
R("width", "embed_dim", defs="^Embedding", i=[M + "embedding.py"])
R("count", "num_embeddings", defs="^Embedding.__init__", i=[M + "embedding.py"])
R("width", "feature_dim", where="attr", base="self|readout|decoder", i=[M + "rnn/", EX + "onnx/models.py"])
R("width", "feature_dim", where="bare", i=[M + "rnn/decoder.py"])
R("width", "readout_dim", where="bare", defs="^_decoder$", i=[M + "rnn/model.py"])
R("width", "input_dim", i=[M + "rnn/"])
R("hidden", "hidden_dim", defs="__init__$", i=[M + "rnn/cells.py", M + "rnn/encoder.py", M + "rnn/decoder.py"], notdefs="Unrolled")
R("hidden", "feature_dim", defs="Readout.__init__", i=[M + "rnn/bahdanau.py"])
R("hidden", "hidden_dim", i=[M + "rnn/config.py"])
R("hidden", "hidden_dim", where="bare", defs="^_scored$", i=[M + "rnn/model.py"])
R("embedding", "embed_dim", i=[M + "rnn/config.py"])
R("hidden", "hidden_dim", where="kw", callee="built|model_of")
R("wiring", "decoder", where="kw", callee="built|model_of")
R("wiring", "decoder", where="bare", defs="^test|^model_of|^built", i=[T + "models/test_parameter_counts.py", T + "models/test_equations.py"])
R("hidden", "hidden_dim", where="bare", i=[T + "models/test_parameter_counts.py"])
R("longest", "max_positions", where="kw", callee="first_pooled")
R("slots", "key_range", where="kw", callee="pooled")
# others
R("heads", "num_heads", where="attr", base="attention", i=[EX])
R("heads", "num_heads", where="attr", base="self", i=[EX + "onnx/layers.py"])
R("width", "embed_dim", where="attr", base="self", i=[EX + "onnx/layers.py"])
R("key_width", "key_dim", i=[EX])
R("width", "head_dim", i=[REC + "generation.py", REC + "maps/factored.py", REC + "serialization.py"])
R("key_width", "key_head_dim", i=[REC + "serialization.py"])
# keyword arguments of layers
LAYERS = "MultiHead|FeedForward|AttentivePooling|SinusoidalPositions|LearnedPositions|RotaryPositions|Residual"
R("width", "embed_dim", where="kw", callee=LAYERS.replace("|RotaryPositions", ""))
R("width", "head_dim", where="kw", callee="RotaryPositions")
R("heads", "num_heads", where="kw", callee=LAYERS)
R("longest", "max_positions", where="kw", callee="LearnedPositions")
R("hidden", "hidden_dim", where="kw", callee="Additive|Concat|LocalPredictive")

# ---- layers ---------------------------------------------------------------------------------
stay("of_heads", where="callattr", x=[L])
stay("of_heads", i=["src/attlas/corpus_statistics/", T + "corpus_statistics/"])
for old, new in {
    "remember": "project_kv", "of_query": "q_proj", "of_key": "k_proj", "of_value": "v_proj", "of_heads": "out_proj",
}.items():
    R(old, new, where="attr")
R("remember", "project_kv", i=[L, "benchmarks/layers_suites.py", T + "support/mechanisms.py", T + "export/test_onnx_recurrent.py"])
R("of_pair", "pair_proj", where="attr")
R("of_position", "position_proj", where="attr")
R("of_coverage", "coverage_proj", where="attr")
R("of_both", "concat_proj", where="attr", base="self(\\.decoder)?|decoder|.*decoder", i=[M, EX, T])
R("of_all", "proj", where="attr", base="self|readout|.*readout|tanh|maxout", i=[M + "rnn/bahdanau.py", EX, T])
R("weigh", "attention_weights", where="method", x=[T + "recording/test_scores.py"])
R("weigh", "attention_weights", i=["benchmarks/layers_suites.py"])
R("glance", "decode_step", where="method", i=[L, M + "transformer/", T + "layers/"])
R("glance_weights", "decode_step_weights")
R("glance", "attend_step", where="method", i=[M + "rnn/"])
R("look", "forward_with_weights", where="method", i=[L, T + "layers/"])
R("look", "forward_with_weights", where="callattr", base="self.attention|self.cross_attention|.*attention", i=[M])
R("look", "attend", where="method", i=[M + "rnn/"])
R("look", "output", where="bare", i=[M + "rnn/", L + "base.py", M + "transformer/decoder.py"])
R("_look", "_forward_with_weights", i=[L])
R("Look", "AttentionOutput", i=[L, M])
R("explicit", "forward_reference", where="method", i=[L, T + "layers/", T + "ops/test_math_attention.py", "benchmarks/layers_suites.py"])
R("energies", "masked_scores", where="method", i=[L])
R("tanh_energies", "additive_scores")
R("energy", "score_proj", where="attr", x=["tests/benchmarks", "benchmarks/contenders"])
R("note", "record", where="method", i=[L, M], notbase="(.*\\.)?tap")
R("_note", "_record", i=[L])
R("_asked", "_split_query", i=[L + "scaled_dot_product.py"])
R("_known", "_known_offset", i=[L + "scaled_dot_product.py"])
R("split", "split_heads", where="method", i=[L + "scaled_dot_product.py", L + "multihead.py"], notbase="torch|text")
R("merge", "merge_heads", where="method", i=[L + "scaled_dot_product.py", L + "multihead.py"])
R("_apart", "_split_heads", i=[L + "multihead.py"])
R("start", "resolve_offset", where="method", i=[L])
R("start", "query_start", where="bare", i=[L + "_nothing_"])
R("check", "check_query", where="method", i=[L, T + "support/mechanisms.py"])
R("_check_alike", "_check_same_rows", i=[O])
for old, new in {
    "FusedAttention": "DotProductAttention", "MultiHead": "MultiheadAttention", "ScaledDotProduct": "ScaledDotProductAttention",
    "Memory": "KeyValueCache", "without_junk": "zero_padding", "Room": "GrowingBuffer", "SourceMemory": "SourceCache",
    "TargetMemory": "TargetCache", "LookingDecoder": "AttentionDecoder",
}.items():
    R(old, new)
for old in ("Additive", "Dot", "General", "Concat", "Local", "LocalMonotonic", "LocalPredictive"):
    R(old, old + "Attention", x=[T + "benchmarks"])
R("Arrays", "AttentionInputs")
R("as_came", "restore")
R("under", "zero_hidden_keys", where="method", i=[L])
R("of", "from_arrays", where="method", base="Arrays", i=[L])
R("of", "from_arrays", where="bare", defs="Arrays", i=[L + "_arrays.py"])
R("_of_pairs", "_expand_pairs")
R("_of_slots", "_check_mask", i=[L])
R("_of_no_number", "_propagate_nan")
R("_can_be_asked", "_is_cheap_to_check", i=[L])
R("_checked", "_check_arguments", i=[L + "functional.py"])
R("_one", "_cached_sinusoid", i=[L + "positional.py", T + "layers/test_positions.py"])
R("_traced", "_is_traced", i=[L + "positional.py"])
R("_even", "_check_even", i=[L + "positional.py"])
R("memory", "cache", i=[L, M, O + "attention.py", O + "banded.py", O + "cache.py", EX])
R("memories", "caches", i=[M, O])

# ---- ops ------------------------------------------------------------------------------------
R("written_attention", "math_attention", i=[O, T + "ops/"])
R("written_pays", "math_is_faster")
R("heard_as_kernel", "register_sdpa_equivalent")
R("brief_attention", "short_query_attention")
R("half_products", "bf16_matmul")
R("halved", "is_bf16_matmul", i=[O + "linear.py", O + "deferred_linear.py", "src/attlas/inference/", T + "inference/", T + "ops/", T + "training/"])
R("halved", "half", i=[O + "attention.py"])
R("halves_time", "has_bf16_instructions")
R("half_product", "bf16_linear", i=["src"])
R("half_product", "bf16_linear", i=[T + "ops/", T + "training/"])
R("overseen", "is_traced_or_transformed")
R("plain", "is_plain_cpu_float32", where="bare", i=[O, L + "additive.py"])
R("hooked", "has_hooks")
R("leads", "onednn_is_faster", i=[O])
R("leads", "onednn_is_faster", i=[T + "ops/test_linear.py"])
R("fused", "fused_attention", i=[O + "attention.py", T + "ops/test_math_attention.py", T + "ops/test_banded.py"])
R("explicit_weights", "attention_weights_of", i=[O, L, T + "ops/"])
R("dropping_by", "dropout_generator")
R("_drawn_from", "_thread_state", i=[O + "dropout.py"])
R("rate", "active_p", i=[O + "dropout.py"])
R("rate", "active_p", where="attr", base="(.*\\.)?dropout")
R("beside", "group_rows", i=[O + "cache.py", L + "scaled_dot_product.py"])
R("grown", "append_keys", where="bare", i=[O + "cache.py"])
R("stacked", "pad_and_concat", i=[O + "cache.py", M, "src/attlas/decoding/"])
R("stacked", "pad_and_concat", i=[T + "support/table_model.py"])
R("followed_by", "concat")
R("extend", "append", where="method", i=[O + "cache.py", M + "transformer/decoder.py", T + "ops/test_cache.py", T + "layers/", T + "referees/test_onnx.py"])
R("choose", "gather_keys", where="method", i=[O + "cache.py", M, T + "ops/test_cache.py"])
R("apart", "split_rows", where="method", i=[O + "cache.py", M, T + "ops/test_cache.py"])
R("joined", "merge_rows", where="method", i=[O + "cache.py", M, T + "ops/test_cache.py"])
R("joined", "merge_blocks", where="method", i=[O + "banded.py"])
R("of_slots", "split_keys", where="method", i=[O + "banded.py"])
R("of_slots", "weights_as_given", where="bare", i=[L + "functional.py"])
R("of_queries", "split_queries", where="method", i=[O + "banded.py"])
R("around", "with_room_for", where="method", i=[O + "cache.py", T + "ops/test_cache.py"])
R("holds", "owns", where="method", i=[O + "cache.py"])
R("used", "length", i=[O + "cache.py"])
R("room", "buffer", where="bare", i=[O + "cache.py"], notdefs="^Room|^grown|^_selected")
R("_rooms", "_buffers")
R("used", "applied", where="attr", base="output|look", i=[M, L])
R("used", "applied", where="attr", i=[T + "layers/test_multihead.py"])
R("used", "applied", i=[L + "base.py", L + "scaled_dot_product.py"])
R("asked", "grouped_query", i=[O + "attention.py"], notdefs="_in_turn")
R("asked", "projected_query", i=[L + "multiplicative.py"])
R("of_query", "query_needs_grad", where="bare", i=[O + "attention.py"], defs="_gradients")
R("of_keys", "keys_need_grad", where="bare", i=[O + "attention.py"], defs="_gradients")
R("of_values", "values_need_grad", where="bare", i=[O + "attention.py"], defs="_gradients")
R("_Asked", "_ThreadState", i=[O + "linear.py"])
R("_asked", "_thread_state", i=[O + "linear.py"])
R("_halves", "_pays_in_bf16", i=[O + "linear.py", T + "ops/"])
R("_by_onednn", "_pays_by_onednn", i=[O + "linear.py", T + "ops/"])
R("computable", "supported_dtype")
R("faster_padded", "padded_lstm_is_faster")
R("band_pays", "band_is_faster")

# ---- models ---------------------------------------------------------------------------------
R("look_back", "self_attention_block", i=[M, T])
R("look_across", "cross_attention_block", i=[M, T])
R("count_across", "cross_attention_block_with_weights", i=[M, T])
R("glance_back", "self_attention_step")
R("glance_across", "cross_attention_step")
R("glanced", "cross_attention_step_weights")
R("think", "feed_forward_block", i=[M, T])
R("covered", "with_coverage", where="method")
R("features", "decode", where="callattr", base="self\\.decoder|decoder|(.*\\.)?model|self|learned|\\)|ours|other|mine", i=["src/attlas", T + "models/", T + "support/", T + "training/", T + "inference/"], x=["src/attlas/training/loss.py"])
R("features", "decode", where="method", i=[M, T + "support/table_model.py", T + "models/"])
R("between", "attention_kind", where="method", i=[M, "src/attlas/inference/", "src/attlas/corpus_statistics/", T + "support/table_model.py", T + "inference/", T + "models/"])
R("begin", "encode_for_search", where="method", i=[M, "src/attlas/decoding/decode.py", T + "models/", T + "support/table_model.py", T + "decoding/", T + "inference/"])
R("remembered", "expanded_cache", where="method", i=[M + "rnn/"])
R("_kept", "_cache_and_coverage", where="method", i=[M + "rnn/decoder.py"])
R("fed", "last_attentional", where="method", i=[M + "rnn/luong.py"])
R("plain", "can_step_fast", i=[M + "transformer/decoder.py"])
R("_plain", "_can_step_fast", i=[M + "transformer/decoder.py"])
R("in_parts", "forward_by_length", i=[M, T])
R("by_length", "encode_by_length", i=[M, T + "models/"])
R("_noticed", "_is_observed", i=[M])
R("overlooked", "num_unreachable", where="method")
R("out_of_sight", "unreachable_tokens")
R("needed", "required_lengths", where="bare", i=[M + "classifier.py", EX + "onnx/classifier.py", T + "export/test_seen.py", T + "models/test_classifier_reach.py"])
R("each", "rows_per_cache", where="attr", i=[M, T + "models/"])
R("each", "rows_per_cache", where="kw", callee="replace|SourceMemory|TargetMemory", i=[M])
R("each", "rows_per_cache", i=[M + "transformer/state.py"])
R("each", "rows_per_cache", i=[M + "cache.py"])
R("own", "own_keys", where="attr", i=[M + "transformer/"])
R("own", "own_keys", where="kw", callee="replace|TargetMemory", i=[M + "transformer/"])
R("own", "own_keys", i=[M + "transformer/state.py"])
R("spread", "expand_rows", where="method", i=[M, T + "models/"])
R("parted", "expand_if_sparse", where="method", i=[M + "transformer/"])
R("longer", "with_next_keys", where="method", i=[M + "transformer/"])
R("_cleared", "_compact", i=[M + "transformer/state.py"])
R("_owned", "_own_or_all", i=[M + "transformer/state.py"])
R("_each_its_own", "_expanded", i=[M + "cache.py"])
R("shared", "shared_rows", i=[M + "cache.py", M + "transformer/state.py"])
R("_alike", "_group_size", i=[M + "cache.py"])
R("ids_of", "zero_padding_ids")
R("of_both", "join_optional", where="bare", i=[M, "src/attlas/decoding/", T + "support/table_model.py"])
R("encoder_of", "build_encoder", i=[M, T + "referees/test_llama.py", "benchmarks/observe_models.py"])
R("positions_of", "build_positions", i=[M])
R("self_attention_of", "build_self_attention")
R("attention_of", "build_attention", i=[M])
R("feedforward_of", "build_feed_forward")
R("residual_of", "build_residual")
R("last_norm_of", "build_last_norm")
R("patterns_of", "parse_patterns")
R("feedforward", "feed_forward", x=[T + "models/test_transformer.py"])
R("around_feedforward", "around_feed_forward")
R("Encoder", "RecurrentEncoder", i=[M + "rnn/", T + "models/test_encoder.py", T + "ops/test_lstm.py"])
for one in ("Bridge", "Recurrence", "Encoder", "RecurrentEncoder"):
    R("width", "input_dim", where="kw", callee=one)
    R("hidden", "hidden_dim", where="kw", callee=one)
R("Decoder", "RecurrentDecoder", i=[M + "rnn/"])
R("Encoder", "TransformerEncoder", i=[M + "transformer/", M + "classifier.py", EX, T + "models/", T + "referees/", T + "support/", "benchmarks/observe_models.py"])
R("Decoder", "TransformerDecoder", i=[M + "transformer/", T + "models/test_transformer_steps.py"])


# ---- shapes of jaxtyping --------------------------------------------------------------------
def shape_word(word, words, rel, where):
    m = re.fullmatch(r"([*#?]*)(\w+)", word)
    if not m:
        return word
    pre, w = m.groups()
    bare = {re.sub(r"^[*#?]+", "", x) for x in words}
    heads = bool(bare & {"heads", "key_heads", "rows_of_each", "heads_times_width"}) or "*heads" in words
    mine = any(rel.startswith(p) for p in MINE)
    lstm = rel in (O + "lstm.py",) or rel.startswith("src/attlas/data/")
    table = {
        "slots": "length" if lstm else "keys", "all_slots": "all_keys", "new_slots": "new_keys",
        "key_heads": "kv_heads", "value_width": "value_dim", "query_width": "query_dim",
        "source_width": "source_dim" if rel.startswith(M) else "key_dim", "context_width": "context_dim", "key_width": "key_dim",
        "both_widths": "both_dims", "out_width": "out_dim", "heads_times_width": "embed_dim", "half_width": "half_dim",
        "known_width": "known_dim", "fed_width": "fed_dim", "other_width": "other_dim", "memories": "caches",
        "room": "capacity" if rel == O + "cache.py" else "room",
    }
    if w == "width" and not rel.startswith("src/attlas/decoding/") and not rel.startswith("tests/"):
        w = "head_dim" if heads else "embed_dim" if rel.startswith((M + "transformer", M + "classifier", M + "embedding", L + "positional", F)) else "dim"
        if rel == M + "embedding.py" and where.startswith("Output"):
            w = "feature_dim"
        if rel.startswith(AN + "value_norms"):
            w = "embed_dim"
        if rel == F + "scaled_dot_product.py":
            w = "d_k"
        if rel == F + "luong.py":
            w = "dim"
    elif w in table:
        w = table[w]
    elif mine and w == "hidden":
        w = "hidden_dim"
    elif mine and w == "embedding":
        w = "embed_dim"
    elif mine and w == "asked" and rel == O + "attention.py":
        w = "grouped_queries"
    return pre + w


# ---- texts ----------------------------------------------------------------------------------
DIM = {"slots": "keys", "key_heads": "kv_heads", "width": "dim", "value_width": "value_dim", "query_width": "query_dim", "source_width": "key_dim", "hidden": "hidden_dim",
       "memories": "caches"}
KNOWN = {"batch", "heads", "queries", "rows", "1", "n", "labels", "positions", "each", "blocks", "texts", "…", "layers", "steps", "directions", *DIM, *DIM.values()}
TECH = {r["old"]: r["new"] for r in RULES if ("_" in r["old"].strip("_") or re.match(r"[A-Z][a-z]+[A-Z]", r["old"])) and "base" not in r}
for name in ("of_query", "of_key", "of_value", "of_heads", "of_slots", "of_all", "of_both", "written_attention", "of_queries", "of_keys", "of_values", "_of_slots", "half_product"):
    TECH.pop(name, None)
TECH_RE = re.compile(r"(?<![\w./])(" + "|".join(sorted(map(re.escape, TECH), key=len, reverse=True)) + r")(?![\w/])")
TICK = {"remember": "project_kv", "Memory": "KeyValueCache", "Room": "GrowingBuffer", "explicit": "forward_reference", "glance": "decode_step", "covered": "with_coverage",
        "features": "decode", "look_back": "self_attention_block", "look_across": "cross_attention_block", "fused": "fused_attention",
        "Encoder": "RecurrentEncoder", "own": "own_keys", "Additive": "AdditiveAttention", "Dot": "DotAttention", "Concat": "ConcatAttention", "General": "GeneralAttention",
        "MultiHead": "MultiheadAttention", "real": "token_mask", "begin": "encode_for_search", "_kept": "_cache_and_coverage", "written_attention": "math_attention",
        "half_products": "bf16_matmul", "linear": "linear"}
SETTINGS = {"width": "embed_dim", "heads": "num_heads", "key_heads": "num_kv_heads", "feedforward": "ffn_dim", "longest": "max_positions", "norm": "norm_type",
            "placement": "norm", "embedding": "embed_dim", "hidden": "hidden_dim", "encoder_hidden": "encoder_hidden_dim", "attention_hidden": "attention_hidden_dim",
            "readout_hidden": "readout_dim", "wiring": "decoder", "tied_output": "tie_output", "tied_source": "tie_source", "feedforward_dropout": "ffn_dropout"}
SETTING_RE = re.compile(r"\b(" + "|".join(sorted(SETTINGS, key=len, reverse=True)) + r")\b")
PAREN = re.compile(r"(\\?\()([^()\\]+?)(\\?\))")
PRODUCT = re.compile(r"\b\w+(?: [·×] \w+)+\b")


def dims(text, rel):
    def paren(m):
        items = [x.strip() for x in m.group(2).replace("\n", " ").split(",")]
        items = [x for x in items if x]
        if all(x in KNOWN or x.isdigit() or x[0] == "{" and x[-1] == "}" for x in items) and any(x in DIM for x in items) and len(items) + m.group(2).count("…") > 1:
            return m.group(1) + re.sub(r"(?<![{.\w])\w+(?![\w.]*})", lambda w: DIM.get(w.group(0), w.group(0)), m.group(2)) + m.group(3)
        if items == ["slots"]:
            return m.group(0).replace("slots", "keys")
        return m.group(0)

    def product(m):
        parts = re.split(r"( [·×] )", m.group(0))
        if all(p.strip() in KNOWN | {"·", "×", "length", "window"} for p in parts):
            return "".join("keys" if p == "slots" else "hidden_dim" if p == "hidden" else p for p in parts)
        return m.group(0)

    return PRODUCT.sub(product, PAREN.sub(paren, text))


CLASSES = {r["old"]: r["new"] for r in RULES if r["old"][:1].isupper() and r["old"] not in ("Encoder", "Decoder", "Look", "Real", "Seen", "Dot", "Local", "General", "Concat", "Additive")}
CLASSES |= {n: n + "Attention" for n in ("Additive", "Dot", "General", "Concat", "Local", "LocalMonotonic", "LocalPredictive")}
PROSE_TESTS = tuple(T + x for x in ("layers/", "ops/", "models/", "patterns/", "reference/", "support/mechanisms", "gpu/test_layers"))
CACHES = tuple([L + x for x in ("base.py", "local.py", "multihead.py", "scaled_dot_product.py", "additive.py")] + [O + "cache.py", O + "banded.py", M + "cache.py", M + "transformer/", M + "rnn/"])


def prose(s, rel, kind):
    if not (rel.startswith(tuple(MINE)) or rel.startswith(PROSE_TESTS) and kind == "str" and " " in s):
        return s
    one, many = ("key", "keys") if rel.startswith((P, F + "patterns", T + "patterns")) else ("position", "positions")
    s = s.replace("slots × window", "length × window").replace("exist and are real", "exist and are tokens")
    s = re.sub(r"(?<![\w.])real of (?=shape|bool)", "token_mask of ", s)
    s = re.sub(r"(?<![\w`{.])slots(?![\w`(=}]|\.\w)", many, s)
    s = re.sub(r"(?<![\w`{.])slot(?![\w`(=}]|\.\w)", one, s)
    s = re.sub(r"(?<![\w`{.])Slots(?![\w`(=}])", many.capitalize(), s)
    s = re.sub(r"\bseen positions?\b", lambda m: m.group(0).replace("seen", "allowed"), s)
    if rel.startswith(CACHES) and kind != "str":
        s = re.sub(r"\b(the|a|every|one|growing|this|that|another|fewer|older|each|no|One|A|This|what a) memor(y|ies)\b(?! of (all|G|the linear))",
                   lambda m: f"{m.group(1)} cache{'s' if m.group(2) == 'ies' else ''}", s)
        s = re.sub(r"\b(the|a) (\w+)'s memory\b", r"\1 \2's cache", s)
    return s


SECTION = re.compile(r"^\[([\w.]+)\]", re.M)


def toml_of(text):
    out, section = [], ""
    for line in text.split("\n"):
        m = SECTION.match(line.strip())
        if m:
            section = m.group(1)
        m = re.match(r"(\s*)(\w+)( *=.*)$", line)
        if m and (section == "model" or section.startswith("model.")) and m.group(2) in SETTINGS:
            line = m.group(1) + SETTINGS[m.group(2)] + m.group(3)
        out.append(line)
    return "\n".join(out)


MODEL_DOT = re.compile(r"\bmodel(\\?)\.(" + "|".join(sorted(SETTINGS, key=len, reverse=True)) + r")\b")
DICTS = ["tests/models/", "tests/export/", "tests/runs/test_seal.py", "tests/training/", "tests/support/", "tests/referees/", "src/attlas/models/rnn/config.py", "src/attlas/models/transformer/config.py", "scripts/settings.py",
         "src/attlas/training/recipe.py", "tests/benchmarks/", "benchmarks/"]


NO_DICTS = ("benchmarks/contenders/opennmt", "benchmarks/contenders/joeynmt", "tests/analysis/test_erasure", "tests/explorer/test_app", "tests/explorer/test_trace", "tests/explorer/test_view",
            "tests/layers/test_contract", "tests/recording/", "tests/corpus_statistics/")
SET_TEXT = re.compile(r"\b(width|heads|hidden|longest|norm|embedding|feedforward|placement|wiring|encoder_hidden|attention_hidden|readout_hidden|key_heads|tied_source|tied_output) = (?=[\'\"{\d]|true|false)")
SET_TEXT_IN = ("tests/models/", "tests/export/", "tests/cli/", "tests/training/", "tests/benchmarks/", "tests/runs/", "tests/referees/", M, EX, "src/attlas/cli/export", "src/attlas/training/recipe.py", "src/attlas/models/factory.py")


PATHS = {"of_query": "q_proj", "of_key": "k_proj", "of_value": "v_proj", "of_heads": "out_proj", "of_pair": "pair_proj", "of_position": "position_proj", "of_coverage": "coverage_proj",
         "of_both": "concat_proj", "of_all": "proj", "energy": "score_proj", "around_feedforward": "around_feed_forward", "feedforward": "feed_forward"}
PATH_RE = re.compile(r"(?<=\.)(" + "|".join(PATHS) + r")(?=[.\"']|\Z)")
PATCHED = {"leads": "onednn_is_faster", "overseen": "is_traced_or_transformed", "plain": "is_plain_cpu_float32", "fused": "fused_attention", "hooked": "has_hooks", "halved": "is_bf16_matmul",
           "_by_onednn": "_pays_by_onednn", "_halves": "_pays_in_bf16", "written_attention": "math_attention", "half_product": "bf16_linear", "features": "decode", "begin": "encode_for_search",
           "remember": "project_kv", "glance": "decode_step", "look": "forward_with_weights", "explicit": "forward_reference", "dense_attention": "dense_attention"}
ATTEND = T + "layers/test_attend.py"


def attend_text(s):
    s = re.sub(r"\bkey_heads, ", "kv_heads, ", s)
    s = re.sub(r"\bslots(?=[,)])", "keys", s)
    s = re.sub(r"\bwidth(?=\))", "dim", s)
    s = s.replace("make width the same", "make dim the same").replace("make slots the same", "make keys the same").replace("make key_heads the same", "make kv_heads the same")
    s = s.replace("got real of", "got token_mask of")
    return s.replace("a first position within", "a query_offset within").replace("whole number as first", "whole number as query_offset")


def set_text(m):
    if m.group(1) == "norm":
        rest = m.string[m.end() : m.end() + 6]
        return m.group(0) if rest[1:] [:3] in ("pre", "pos") else "norm_type = "
    return SETTINGS[m.group(1)] + " = "


def text_of(s, rel, kind, at):
    if rel.startswith(("tests/", "benchmarks/")) and kind == "str":
        s = PATH_RE.sub(lambda m: PATHS[m.group(1)], s)
        m = re.fullmatch(r'"(\w+)"', s)
        if m and (m.group(1) in ("of_query", "of_key", "of_value", "of_heads", "of_pair", "of_position") or s == '"energy"' and rel.endswith("test_muon.py")):
            s = f'"{PATHS[m.group(1)]}"'
        elif m and at["callee"] in ("setattr", "getattr", "object") and m.group(1) in PATCHED:
            s = f'"{PATCHED[m.group(1)]}"'
    s = s.replace("attlas trace 1", "attlas trace 2")  # its keys have other names
    if rel in (REC + "serialization.py", T + "recording/test_trace.py") and kind == "str":
        s = re.sub(r"^\"(\d+)\.real\"$", r'"\1.token_mask"', s)
        s = s.replace("`first`", "`query_offset`").replace("'first' of", "'query_offset' of").replace("`real`", "`token_mask`")
    if rel == ATTEND and kind == "str":
        s = attend_text(s)
    if rel.startswith(("tests/models/", "tests/layers/", "tests/export/")) and kind == "str":
        s = s.replace("a width that the heads share evenly", "an embed_dim that num_heads divides").replace("choose heads that divide the width", "choose num_heads that divides embed_dim")
        s = s.replace("heads that share key_heads evenly\"", "a num_heads that num_kv_heads divides\"").replace("heads that share key_heads evenly;", "a num_heads that num_kv_heads divides;")
    if rel.startswith(SET_TEXT_IN):
        s = SET_TEXT.sub(set_text, s)
    if "model.model" not in s:
        s = MODEL_DOT.sub(lambda m: f"model{m.group(1)}.{SETTINGS[m.group(2)]}", s)
    if "[model]" in s:
        s = toml_of(s)
    m = re.fullmatch(r'([rbuRBU]*)(["\'])(\w+)\2', s)
    if m and kind == "str":
        word = m.group(3)
        new = None
        if word == "real" and rel.startswith(("src/attlas/export", "src/attlas/recording", "src/attlas/layers", "src/attlas/decoding", "src/attlas/analysis", "tests/")):
            new = "token_mask"
        elif word in CLASSES and (rel.startswith(tuple(MINE)) or at["before"] in "[(" and word not in ("Additive", "Dot", "General", "Concat", "Local")):
            new = CLASSES[word]
        elif word == "first" and rel in (REC + "serialization.py", T + "recording/test_trace.py", T + "layers/test_attend.py", T + "recording/test_axes.py"):
            new = "query_offset"
        elif word == "slots" and rel.startswith((EX, "tests/export/", L)):
            new = "keys"
        elif word in ("key_heads", "width") and rel == L + "_arrays.py":
            new = {"key_heads": "kv_heads", "width": "dim"}[word]
        elif word in SETTINGS and (at["key"] or at["before"] in "(,[{" ) and rel.startswith(("tests/models/", "tests/export/", "tests/runs/test_seal.py", M + "rnn/config.py", M + "transformer/config.py", "tests/training/test_recipe.py", "tests/training/test_initialization.py", "scripts/settings.py", "src/attlas/training/recipe.py")):
            if word not in ("norm", "heads", "width", "hidden", "longest", "embedding") or at["key"] or rel.startswith((M, "scripts")) or "test_initialization" in rel:
                new = SETTINGS[word]
        elif word in SETTINGS and at["key"] and rel.startswith(("tests/", "benchmarks/")) and not rel.startswith(NO_DICTS):
            new = SETTINGS[word]
        elif word in ("tied_source", "tied_output"):
            new = SETTINGS[word]
        if new:
            return f"{m.group(1)}{m.group(2)}{new}{m.group(2)}"
    if rel.startswith(("src/attlas", "tests/layers", "tests/export", "tests/recording", "tests/ops", "tests/models", "tests/support", "tests/analysis")) and not rel.startswith("src/attlas/explorer"):
        s = dims(s, rel)

    def tech(m):
        return TECH[m.group(1)]
    s = TECH_RE.sub(tech, s)
    s = re.sub(r"`(\w+)(?=[`(\[.=])", lambda m: "`" + TICK.get(m.group(1), m.group(1)) if rel.startswith(tuple(MINE)) else m.group(0), s)
    s = prose(s, rel, kind)
    if kind in ("doc", "comment") and rel.startswith("src/attlas"):
        s = re.sub(r"(?<![\w`])real(?=(, \w+)*: )", "token_mask", s)
        if kind == "doc" and (rel.startswith(tuple(MINE)) or rel.startswith(REC)) and "origins" not in rel:
            s = re.sub(r"(?<![\w`])first(?=: )", "query_offset", s)
        s = re.sub(r"`real`", "`token_mask`", s)
        if rel.startswith(tuple(MINE)):
            s = s.replace("`first`", "`offset`" if "positional" in rel or "rotary" in rel else "`query_offset`")
        if rel.startswith((M, L + "multihead.py")):
            s = re.sub(r"(?<![\w`])(width|heads|key_heads|head_width|value_width|feedforward|longest|wiring|placement|tied_\w+|hidden)(?=(, \w+)*: )",
                       lambda m: {**SETTINGS, "head_width": "head_dim", "value_width": "value_dim"}[m.group(1)], s)
    return s


# ---- pages and plain edits ------------------------------------------------------------------
C, RC, MH = M + "transformer/config.py", M + "rnn/config.py", L + "multihead.py"
EDITS = [
    ("tests/layers/test_attention.py", "GeneralAttention, LocalPredictiveAttention, MultiheadAttention\nfrom attlas.layers import ScaledDotProductAttention",
     "GeneralAttention\nfrom attlas.layers import LocalPredictiveAttention, MultiheadAttention, ScaledDotProductAttention"),
    ("src/attlas/decoding/search.py", "total=torch.zeros(len(token_mask), dtype=sums(token_mask.device), device=token_mask.device)",
     "total=torch.zeros(\n                len(token_mask), dtype=sums(token_mask.device), device=token_mask.device\n            )"),
    (AN + "roles/scores.py", "*num_keys = (part", "*keys = (part"),
    (AN + "roles/scores.py", "*num_keys[k", "*keys[k"),
    (AN + "value_norms/projections.py", '    ("of_value", "of_heads", "values"),  # attlas\n', ""),
    (AN + "value_norms/projections.py", '"values"),  # BART, Marian,', '"values"),  # attlas, BART, Marian,'),
    (AN + "value_norms/projections.py", '*(("of_query", "of_key"), ("q_proj", "k_proj"),', '*(("q_proj", "k_proj"),'),
    (MH, "`query_offset` is the position of the first position: with rotary", "`key_offset` is the place of the first position: with rotary"),
    (MH, "memory are remembered with first = memory.slots", "cache are projected with key_offset = cache.num_keys"),
    (M + "rnn/decoder.py", "`width` is that of", "`feature_dim` is that of"),
    (M + "transformer/block.py", "encode(x, real)", "encode(x, token_mask)"),
    (L + "base.py", "in the pattern and real.", "in the pattern, and a token."),
    (L + "functional.py", "pattern, mask, real and bias", "pattern, mask, token_mask and bias"),
    (O + "cache.py", "(memories, heads, rows / memories, width)", "(caches, heads, rows / caches, dim)"),
    (AN + "value_norms/projections.py", "of_value, of_heads; v_proj with", "v_proj with"),
    ("tests/export/test_onnx_recurrent.py", 'settings["hidden"]', 'settings["hidden_dim"]'),
    ('tests/cli/test_train.py', 'table("model")["hidden"]', 'table("model")["hidden_dim"]'),
    ('tests/cli/test_train.py', '["model"]["width"]', '["model"]["embed_dim"]'),
    ('tests/runs/test_run.py', 'table("model")["hidden"]', 'table("model")["hidden_dim"]'),
    ('tests/training/test_classifying.py', '["model"]["longest"]', '["model"]["max_positions"]'),
    ('tests/training/test_trainer.py', '["model"]["longest"]', '["model"]["max_positions"]'),
    ("tests/export/test_onnx_recurrent.py", '"hidden_dim": ["batch"', '"hidden": ["batch"'),
    (L + "_arrays.py", "else ''}positions)", "else ''}keys)"),
    (REC + "maps/base.py", "rows, slots: the window", "rows, key_range: the window"),
    (F + "multihead.py", "MultiheadAttention(Q, K, V) =", "MultiHead(Q, K, V) ="),
    ("tests/export/test_onnx_classifier.py", 'chosen["longest"]', 'chosen["max_positions"]'),
    (C, "a width that the heads share evenly", "an embed_dim that num_heads divides"),
    (C, "choose heads that divide the width", "choose num_heads that divides embed_dim"),
    (C, "heads that share num_kv_heads evenly", "a num_heads that num_kv_heads divides"),
    (C, "choose num_kv_heads that divide the heads", "choose num_kv_heads that divides num_heads"),
    (C, " for num_heads = {", " for num_heads = {"),
    (C, 'of = "width" if self.positions == "sinusoidal" else "width / heads"', 'of = "embed_dim" if self.positions == "sinusoidal" else "embed_dim / num_heads"'),
    (MH, "a width that the heads share evenly", "an embed_dim that num_heads divides"),
    (MH, 'f"width {embed_dim} for', 'f"embed_dim {embed_dim} for'),
    (MH, "choose heads that divide the width, or", "choose num_heads that divides embed_dim, or"),
    (MH, "heads that share num_kv_heads evenly", "a num_heads that num_kv_heads divides"),
    (MH, "choose num_kv_heads that divide the heads", "choose num_kv_heads that divides num_heads"),
    (MH, "None = width / heads", "None = embed_dim / num_heads"),
    (MH, "heads / num_kv_heads neighbours", "num_heads / num_kv_heads neighbours"),
    (L + "base.py", '"width" if self', '"dim" if self'),
    (L + "functional.py", '"a whole number as first"', '"a whole number as query_offset"'),
    (L + "functional.py", '"a first position within', '"a query_offset within'),
]
FILES_RENAMED = []
CODE = {"Additive": "AdditiveAttention", "Dot": "DotAttention", "General": "GeneralAttention", "Concat": "ConcatAttention", "Local": "LocalAttention",
        "LocalMonotonic": "LocalMonotonicAttention", "LocalPredictive": "LocalPredictiveAttention", "remember": "project_kv", "weigh": "attention_weights",
        "Memory": "KeyValueCache", "MultiHead": "MultiheadAttention", "between": "attention_kind", "key_heads": "num_kv_heads", "wiring": "decoder", "placement": "norm",
        "feedforward": "ffn_dim", "explicit": "forward_reference", "heard_as_kernel": "register_sdpa_equivalent"}
CODE_RE = re.compile(r"(?<![\w./-])(attlas\.layers\.|layers\.|model\.|attention\.|layer\.|self\.|\.)?(" + "|".join(sorted({**CODE, **TECH}, key=len, reverse=True)) + r")(?![\w/-])")


def code(text):
    text = MODEL_DOT.sub(lambda m: f"model{m.group(1)}.{SETTINGS[m.group(2)]}", text)
    text = CODE_RE.sub(lambda m: (m.group(1) or "") + {**TECH, **CODE}[m.group(2)], text)
    text = re.sub(r"\breal(?==| *:)|^real$|(?<=`)real(?=`)", "token_mask", text)
    if "parse_reference" not in text and "_links" not in text:
        text = re.sub(r"\bfirst(?==)|(?<=`)first(?=`)", "query_offset", text)
    if "Attention(" in text or "RecurrentConfig(" in text or "TransformerConfig(" in text:
        text = re.sub(r"\b(hidden|width|heads)(?==)", lambda m: {"hidden": "hidden_dim", "width": "embed_dim", "heads": "num_heads"}[m.group(1)], text)
    if "[model]" in text:
        text = toml_of(text)
    return dims(text, "src/attlas")


def page(text):
    parts = re.split(r"(?ms)(^```.*?^```)", text)
    for n, part in enumerate(parts):
        parts[n] = code(part) if n % 2 else re.sub(r"`[^`\n]+`", lambda m: code(m.group(0)), part)
    return "".join(parts)


MD = {name: page for name in ("README.md", "docs/analysis.md", "docs/design.md", "docs/seeing.md", "docs/statistics.md", "docs/beyond-one-machine.md", "benchmarks/README.md")}
