"""What a trace says about a model: roles, similarity, flow, explanation, alignment."""

from attlas.analysis.alignment.links import argmax_links, argmax_links_of_sources, threshold_links
from attlas.analysis.alignment.pharaoh import (
    Reference,
    parse_links,
    parse_reference,
    read_links,
    read_reference,
    write_links,
)
from attlas.analysis.alignment.symmetrisation import (
    flipped,
    grow_diagonal,
    grow_diagonal_final,
    intersection,
    symmetrised,
    union,
)
from attlas.analysis.explanation.adversary import Adversary, adversary
from attlas.analysis.explanation.correlation import (
    Correlation,
    gradient_correlation,
    leave_one_out_correlation,
    product_correlation,
)
from attlas.analysis.explanation.erasure import (
    Erased,
    Flips,
    SingleErasure,
    multi_erasure,
    single_erasure,
)
from attlas.analysis.explanation.focus import Focus
from attlas.analysis.explanation.kendall import kendall_tau
from attlas.analysis.explanation.output import jensen_shannon, total_variation
from attlas.analysis.explanation.permutation import PermutationDistance, permutation_distance
from attlas.analysis.explanation.uniformity import uniform_distance
from attlas.analysis.flow.attention_flow import attention_flow
from attlas.analysis.flow.rollout import rollout
from attlas.analysis.habits.repeated import repeated
from attlas.analysis.habits.role import ROLES, THRESHOLDS, Role
from attlas.analysis.habits.roles import role_of, roles
from attlas.analysis.habits.roles_table import RoleTable
from attlas.analysis.heads.ablation import AblatedHead, HeadAblation, head_ablation
from attlas.analysis.heads.gate import gated
from attlas.analysis.heads.importance import HeadImportance, head_importance
from attlas.analysis.heads.pruning import Pruned, pruning_curve
from attlas.analysis.norms.projections import Projections
from attlas.analysis.norms.source import Source
from attlas.analysis.norms.sources import hearing_sources
from attlas.analysis.norms.value_map import ValueMap, value_map
from attlas.analysis.norms.value_norms import ValueNorms
from attlas.analysis.similarity.clustering import Merge, Tree, clustered
from attlas.analysis.similarity.divergences import diversity, head_divergences, layer_divergences
from attlas.analysis.treebank.dependencies import DependencyTable, Found
from attlas.analysis.treebank.syntax import syntax
from attlas.analysis.treebank.wordwise import between_words, word_numbers
from attlas.analysis.wording.words import CAUTION, in_words

__all__ = [
    "CAUTION",
    "ROLES",
    "THRESHOLDS",
    "AblatedHead",
    "Adversary",
    "Correlation",
    "DependencyTable",
    "Erased",
    "Flips",
    "Focus",
    "Found",
    "HeadAblation",
    "HeadImportance",
    "Merge",
    "PermutationDistance",
    "Projections",
    "Pruned",
    "Reference",
    "Role",
    "RoleTable",
    "SingleErasure",
    "Source",
    "Tree",
    "ValueMap",
    "ValueNorms",
    "adversary",
    "argmax_links",
    "argmax_links_of_sources",
    "attention_flow",
    "between_words",
    "clustered",
    "diversity",
    "flipped",
    "gated",
    "gradient_correlation",
    "grow_diagonal",
    "grow_diagonal_final",
    "head_ablation",
    "head_divergences",
    "head_importance",
    "hearing_sources",
    "in_words",
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
    "read_reference",
    "repeated",
    "role_of",
    "roles",
    "rollout",
    "single_erasure",
    "symmetrised",
    "syntax",
    "threshold_links",
    "total_variation",
    "uniform_distance",
    "union",
    "value_map",
    "word_numbers",
    "write_links",
]
