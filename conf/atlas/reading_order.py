"""The order in which a reader meets the chapters and their pages. A new page goes last until it is named here."""

from __future__ import annotations

#: The pages about errors by what fails, as the index of the chapter lists them (``search.symptoms``). A page of another chapter
#: has the chapter before its name.
ERRORS = {
    "There is no gradient, or nothing is learned": [
        "no_grad_fn",
        "grad_of_non_leaf",
        "unused_in_graph",
        "not_a_scalar",
        "gradient_shape",
        "integer_leaf",
        "requires_grad_of_non_leaf",
        "non_leaf_in_optimizer",
        "checkpoint_without_gradients",
        "none_has_no_zero",
        "scheduler_before_optimizer",
        "graphs/why_is_grad_none",
        "training/training_loop",
        "training/optimizers",
        "training/optimizer_variants",
        "training/learning_rate_schedules",
    ],
    "Backward fails": [
        "backward_twice",
        "modified_in_place",
        "leaf_in_place",
        "view_of_leaf",
        "view_of_several",
        "inference_tensor",
        "checkpoint_metadata",
        "derivative_not_implemented",
    ],
    "NaN and infinity": ["loss_is_nan", "nan_in_backward", "training/gradient_clipping"],
    "Shapes do not fit": [
        "shapes_cannot_be_multiplied",
        "sizes_do_not_match",
        "expanded_size",
        "invalid_shape",
        "view_not_compatible",
        "stack_unequal_sizes",
        "cat_sizes",
        "einsum_subscript",
        "dimension_out_of_range",
        "expected_channels",
        "output_too_small",
        "rnn_input_size",
        "one_value_per_channel",
        "target_size_differs",
        "lists_of_unequal_length",
    ],
    "Types, indices and values do not fit": [
        "different_dtypes",
        "wrong_target_dtype",
        "index_out_of_range",
        "not_implemented_for_type",
        "not_a_single_element",
        "ambiguous_truth",
        "unscale_fp16",
        "expected_dtype_for_end",
        "negative_stride",
        "cannot_assign_parameter",
    ],
    "Devices and memory": [
        "out_of_memory",
        "two_devices",
        "not_compiled_with_cuda",
        "no_kernel_image",
        "copy_out_of_meta",
        "shared_memory_location",
        "cuda/no_grad_memory",
        "memory/forecast_a_training_step",
        "graphs/graph_lifetime",
    ],
    "Files, copies and NumPy": [
        "state_dict_keys",
        "weights_only_load_failed",
        "optimizer_group_size",
        "collate_found_none",
        "training/data_loading",
        "copy_construct_from_tensor",
        "deepcopy_of_non_leaf",
        "numpy_of_grad",
        "cuda_tensor_to_numpy",
    ],
    "Several processes": ["dataloader_worker", "ddp_finished_reduction", "cuda_in_forked_subprocess"],
    "torch.compile and torch.func": [
        "data_dependent_branching",
        "recompile_limit",
        "vmap_item",
        "func_grad_of_vector",
    ],
    "Custom Functions": [
        "legacy_function",
        "saved_wrong_type",
        "number_of_gradients",
        "invalid_gradient",
        "jacobian_mismatch",
        "setup_context_missing",
    ],
}

CHAPTERS = {
    "graphs": [
        "first_graph",
        "leaves_and_roots",
        "functions_are_nodes",
        "graph_lifetime",
        "dynamic_graphs",
        "why_is_grad_none",
        "from_module_to_kernel",
        "grad_fn_names",
        "static_and_dynamic",
        "draw_a_graph",
    ],
    "differentiation": [
        "vector_jacobian_products",
        "accumulation",
        "gradients_of_intermediates",
        "hooks",
        "hooks_on_modules",
        "autograd_from_scratch",
        "build_the_engine",
        "higher_order",
        "jacobian_and_hessian",
        "forward_mode",
        "inplace_and_versions",
        "slice_assignment",
        "complex_gradients",
        "points_without_a_derivative",
        "gradient_layouts",
    ],
    "functions": [
        "exp_function",
        "change_the_gradient",
        "context_methods",
        "gradcheck",
        "double_backward",
        "functions_and_transforms",
    ],
    "tensors": [
        "copy_table",
        "strides",
        "expand_and_aliasing",
        "squeeze_and_permute",
        "detach_clone_data",
        "storage",
    ],
    "modes": ["grad_modes", "train_and_eval", "freezing"],
    "memory": [
        "what_is_saved",
        "memory_by_mode",
        "checkpointing",
        "saved_tensor_hooks",
        "precision",
        "forecast_a_training_step",
        "probe_an_operator",
    ],
    "debugging": ["anomaly_detection", "finding_nans", "silent_mistakes"],
    "errors": [page for pages in ERRORS.values() for page in pages if "/" not in page],
    "profiling": ["profiler_table", "profiler_traces", "benchmarking", "cost_of_recording"],
    "training": [
        "fit_by_hand",
        "training_loop",
        "initialisation",
        "optimizers",
        "optimizer_variants",
        "gradient_clipping",
        "learning_rate_schedules",
        "data_loading",
        "reproducibility",
    ],
    "cuda": [
        "devices",
        "no_grad_memory",
        "cuda_profiler",
        "memory_snapshot",
        "checkpoint_and_precision",
        "determinism_on_gpu",
    ],
}

# Page names are unique in the whole gallery (sphinx-gallery insists on it), so one count serves all chapters.
_POSITION = {page: number for number, page in enumerate(page for pages in CHAPTERS.values() for page in pages)}


def page_order(file_name: str) -> tuple[int, str]:
    """Sort key for an example's file name: its place in ``CHAPTERS``, and pages that are not named there last.

    >>> sorted(["zero.py", "leaves_and_roots.py", "first_graph.py"], key=page_order)
    ['first_graph.py', 'leaves_and_roots.py', 'zero.py']
    """
    name = file_name.removesuffix(".py")
    return _POSITION.get(name, len(_POSITION)), name
