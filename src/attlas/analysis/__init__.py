"""What a trace says about a model: roles, similarity, flow, explanation, alignment."""

from attlas.analysis.ablation import AblatedHead, HeadAblation, head_ablation
from attlas.analysis.adversary import Adversary, adversary
from attlas.analysis.alignment import argmax_links, argmax_links_of_sources, threshold_links
from attlas.analysis.clustering import Merge, Tree, clustered
from attlas.analysis.correlation import (
    Correlation,
    gradient_correlation,
    leave_one_out_correlation,
    product_correlation,
)
from attlas.analysis.dependencies import DependencyTable, Found
from attlas.analysis.erasure import Erased, Flips, SingleErasure, multi_erasure, single_erasure
from attlas.analysis.flow import attention_flow
from attlas.analysis.importance import HeadImportance, head_importance
from attlas.analysis.kendall import kendall_tau
from attlas.analysis.norms import ValueNorms
from attlas.analysis.permutation import PermutationDistance, permutation_distance
from attlas.analysis.pharaoh import Reference, read_links, read_reference, write_links
from attlas.analysis.projections import Projections
from attlas.analysis.pruning import Pruned, pruning_curve
from attlas.analysis.repeated import repeated
from attlas.analysis.role import ROLES, Role
from attlas.analysis.roles import role_of, roles
from attlas.analysis.roles_table import RoleTable
from attlas.analysis.rollout import rollout
from attlas.analysis.similarity import diversity, head_divergences, layer_divergences
from attlas.analysis.sources import hearing_sources
from attlas.analysis.symmetrisation import symmetrised
from attlas.analysis.syntax import syntax
from attlas.analysis.uniformity import uniform_distance
from attlas.analysis.value_map import ValueMap, value_map
from attlas.analysis.words import in_words
from attlas.analysis.wordwise import word_numbers

__all__ = [
    "ROLES",
    "AblatedHead",
    "Adversary",
    "Correlation",
    "DependencyTable",
    "Erased",
    "Flips",
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
    "Tree",
    "ValueMap",
    "ValueNorms",
    "adversary",
    "argmax_links",
    "argmax_links_of_sources",
    "attention_flow",
    "clustered",
    "diversity",
    "gradient_correlation",
    "head_ablation",
    "head_divergences",
    "head_importance",
    "hearing_sources",
    "in_words",
    "kendall_tau",
    "layer_divergences",
    "leave_one_out_correlation",
    "multi_erasure",
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
    "uniform_distance",
    "value_map",
    "word_numbers",
    "write_links",
]
