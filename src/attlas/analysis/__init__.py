"""Analyses of traces and models: roles, similarity, rollout and flow, faithfulness, alignment."""

from attlas.analysis.alignment import (
    Reference,
    argmax_links,
    argmax_links_of_sources,
    grow_diagonal,
    grow_diagonal_final,
    intersection,
    parse_links,
    parse_reference,
    read_links,
    read_numbered_reference,
    read_reference,
    symmetrize,
    threshold_links,
    transpose_links,
    union,
    write_links,
)
from attlas.analysis.description import CAUTION, describe
from attlas.analysis.faithfulness.adversarial import AdversarialWeights, adversarial_weights
from attlas.analysis.faithfulness.correlation import (
    Correlation,
    gradient_correlation,
    kendall_tau,
    leave_one_out_correlation,
    product_correlation,
)
from attlas.analysis.faithfulness.erasure import (
    DecisionFlips,
    ErasedKey,
    SingleErasure,
    multi_erasure,
    single_erasure,
)
from attlas.analysis.faithfulness.experiment import AttentionTarget, jensen_shannon, total_variation
from attlas.analysis.faithfulness.permutation import (
    PermutationDistance,
    permutation_distance,
    uniform_distance,
)
from attlas.analysis.flow import attention_flow
from attlas.analysis.head_importance import (
    AblatedHead,
    HeadAblation,
    HeadImportance,
    Pruned,
    gated,
    head_ablation,
    head_importance,
    pruning_curve,
)
from attlas.analysis.roles import role_of, roles
from attlas.analysis.roles.scores import repeated
from attlas.analysis.roles.table import ROLES, THRESHOLDS, Role, RoleTable
from attlas.analysis.rollout import rollout
from attlas.analysis.similarity import (
    Merge,
    Tree,
    cluster_heads,
    diversity,
    head_divergences,
    layer_divergences,
)
from attlas.analysis.syntax import (
    DependencyTable,
    RelationHead,
    between_words,
    syntax,
    word_numbers,
)
from attlas.analysis.value_norms import ValueNorms
from attlas.analysis.value_norms.inputs import ValueInputs, record_value_inputs
from attlas.analysis.value_norms.projections import Projections, ValueMap, value_map

__all__ = [
    "CAUTION",
    "ROLES",
    "THRESHOLDS",
    "AblatedHead",
    "AdversarialWeights",
    "AttentionTarget",
    "Correlation",
    "DecisionFlips",
    "DependencyTable",
    "ErasedKey",
    "HeadAblation",
    "HeadImportance",
    "Merge",
    "PermutationDistance",
    "Projections",
    "Pruned",
    "Reference",
    "RelationHead",
    "Role",
    "RoleTable",
    "SingleErasure",
    "Tree",
    "ValueInputs",
    "ValueMap",
    "ValueNorms",
    "adversarial_weights",
    "argmax_links",
    "argmax_links_of_sources",
    "attention_flow",
    "between_words",
    "cluster_heads",
    "describe",
    "diversity",
    "gated",
    "gradient_correlation",
    "grow_diagonal",
    "grow_diagonal_final",
    "head_ablation",
    "head_divergences",
    "head_importance",
    "intersection",
    "jensen_shannon",
    "kendall_tau",
    "layer_divergences",
    "leave_one_out_correlation",
    "multi_erasure",
    "parse_links",
    "parse_reference",
    "permutation_distance",
    "product_correlation",
    "pruning_curve",
    "read_links",
    "read_numbered_reference",
    "read_reference",
    "record_value_inputs",
    "repeated",
    "role_of",
    "roles",
    "rollout",
    "single_erasure",
    "symmetrize",
    "syntax",
    "threshold_links",
    "total_variation",
    "transpose_links",
    "uniform_distance",
    "union",
    "value_map",
    "word_numbers",
    "write_links",
]
