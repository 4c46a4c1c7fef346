sym("errors", listed="join_names", listed_paths="join_paths")
sym("_text", amount="count_noun")
sym("_files", standing="existing")
sym("_output", opened="open_output")
sym(
    "_hardware",
    keep_freed_memory="disable_malloc_trim",
    give_back_freed_memory="malloc_trim",
)
sym(
    "_parallel",
    dealt="balance",
    Forks="ForkPool",
    side_by_side="run_threads",
    Crew="ThreadGroup",
    crew_of="open_thread_group",
    in_shares="map_shares",
    kernels_of="kernel_threads",
)
sym(
    "config.base",
    Place="SettingPath",
    alike="similar_settings",
    named="settings_named",
    nearest="nearest_settings",
    regrouped="drop_idle_settings",
)
sym("data.lines", opened="open_input", shown="shown_path")
sym("data.tables", suffix_of="data_suffix")
sym("data.base", held_back="split_validation")
sym("data.batching", sampled="sample_segmentations")
sym("data.labelled", alike="label_key")
sym("data.vocabulary", Listed="ListVocabulary", load_listed="load_list_vocabulary")
sym("data.vocabularies", labels_told="describe_labels")
sym("decoding.scoring", listed="to_hypotheses")
sym("decoding.search", found_by="run_searches", Paths="SingleHypothesisSearch")
sym("decoding.beam", Beams="BeamSearch")
sym("decoding.sampling", chance="splitmix64_uniform")
sym("decoding.decode", Asked="SearchInput")
sym(
    "inference.alignment",
    Rereading="TeacherForcedTrace",
    reread="trace_teacher_forced",
    attention_of="teacher_forced_attention",
    links_of="attention_links",
    check_looks_across="check_has_cross_attention",
    words_looked_at="most_attended_words",
)
sym("inference.translator", remarks="translation_remarks", side_by_side="parallel_map")
sym("inference.classifier", remarks="classification_remarks")

sym(
    "jobs.checkpointed_output",
    Part="ResumableOutput",
    books="progress_dir",
    BOOKS="PROGRESS_DIR",
    Stamp="FileFingerprint",
    Progress="OutputProgress",
    told="describe_origin",
    checksum="output_checksum",
    recorded="read_progress",
)
sym(
    "jobs.statistics",
    Corpus="CorpusFile",
    Asked="StatisticsOptions",
    StatsPart="StatisticsOutput",
    Measuring="CorpusMeasurement",
    work="run_statistics",
)
sym("jobs.classify_stream", attention_of="classify_with_trace")
sym("runs.checkpoints", Shelf="CheckpointStore")
sym(
    "runs.loaded",
    Subject="LoadedCheckpoint",
    TranslatorSubject="LoadedTranslator",
    ClassifierSubject="LoadedClassifier",
    subject_of="load_checkpoint",
    unfit="unsupported",
    translating="require_translator",
    of_checkpoint="checkpoint_digest",
    of_text="text_digest",
    of_files="file_digests",
    of_vocabularies="vocabularies_digest",
    of_settings="settings_digest",
    short="short_digest",
)
sym(
    "export.onnx.attention", GraphLooking="GraphPatternAttention", Source="SourceInputs"
)
sym("export.onnx.layers", Turns="RotaryAngles", pooled="pool_graph")
sym(
    "training.trainer",
    Sitting="TrainingSession",
    sit="run_session",
    Course="EpochLoop",
    reached="limit_reached",
    part_done="fraction_done",
    follow="follow_main_process",
    told_of_checkpoints="explain_with_checkpoints",
    planned="planned_updates",
)
sym("training.logging", Teller="EventLogger", Journal="MetricsFile")
sym("training.validation", Judge="Validator")
sym("training.checkpointing", Saver="CheckpointManager", Window="RunningTotals")
sym(
    "training.distributed",
    Fleet="ProcessGroup",
    fleet_of="open_process_group",
    Word="Command",
    Spread="DistributedModel",
    Learnt="TrainingBatch",
    Weighted="WeightedBatch",
    weight_of="batch_weight",
    launched="is_launched",
    leading="is_main_process",
)
sym(
    "training.optimizers",
    Sharing="Parallelism",
    moments="optimizer_state",
    restore_moments="load_optimizer_state",
    fused="has_fused_adam",
    hidden_matrices="hidden_weights",
    orthogonalised="orthogonalize",
)
sym("training.averaging", move="update_average")
sym(
    "training.scheduled_sampling",
    sampled="scheduled_sampling_logits",
    Feeding="ScheduledSampling",
    ConstantFeeding="ConstantSampling",
    LinearFeeding="LinearSampling",
    ExponentialFeeding="ExponentialSampling",
    InverseSigmoidFeeding="InverseSigmoidSampling",
    FeedingConfig="ScheduledSamplingConfig",
)
sym(
    "training.loss",
    consistent_cross_entropy="rdrop_cross_entropy",
    consistent_cross_entropy_and_gradient="rdrop_cross_entropy_and_gradient",
    consistent_sequence_loss="rdrop_sequence_loss",
    less_target="subtract_target",
    expected="expected_loss",
)
sym("training.learner", seed_of="derive_seed")
sym(
    "training.setup",
    prepared="prepare_run",
    joined="join_run",
    this_attlas="code_version",
)
sym("training.recipe", check_led="check_same_as_main", differing="changed_settings")
sym("training.tasks.translation", Translating="TranslationTask")
sym("training.tasks.classification", Classifying="ClassificationTask")
