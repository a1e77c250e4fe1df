#!/usr/bin/env python3
"""Shows that the ordinary tests see planted bugs. bugs.py PLANTED_DIR SOURCE_DIR [BUG ...]

Each test below is one of the ordinary suite and knows nothing of the bug; here it runs from the same
objects, linked with tests/planted/planted.cc. With the bug it must fail; without, it must pass.
"""

import os
import pathlib
import subprocess
import sys

# bug -> program, test
CAUGHT_BY = {
    "local_denominator": ("parity_layouts", "All/Layouts.EqualOneProcessInFloat64/dp3_messages"),
    "clips_the_sum": ("unit_engine_execute", "StepEnd.ClipsTheNormOfTheMeanGradient"),
    "local_clip_norm": ("parity_layouts", "All/Layouts.EqualOneProcessInFloat64/shard2_zero1_messages"),
    "decay_on_norms": ("unit_engine_execute", "StepEnd.NormsDoNotDecay"),
    "missing_reduction": ("parity_layouts", "All/Layouts.EqualOneProcessInFloat64/dp2_messages"),
    "double_reduction": ("parity_layouts", "All/Layouts.EqualOneProcessInFloat64/dp2_messages"),
    "stale_gather": ("parity_layouts", "All/Layouts.EqualOneProcessInFloat64/shard2_zero3_messages"),
    "overwritten_gradient": ("parity_layouts", "All/Layouts.EqualOneProcessInFloat64/accumulate4_messages"),
    "tied_gradient_lost": ("parity_layouts", "All/Layouts.EqualOneProcessInFloat64/dp2_tied_messages"),
    "stash_kept": ("parity_layouts", "ShapesByLayouts/Bytes.PredictedEqualMeasured/*"),
    "mask_leak": ("unit_engine_layers", "All/Families.DocumentsDoNotSeeEachOther/llama_free_float64"),
    "recompute_without_turn": ("unit_engine_layers", "All/Families.RecomputationGivesTheSameBits/llama_free_float64"),
    "normed_twice": ("unit_engine_layers", "All/Families.RemakingGivesTheSameBits/qwen3_float64"),
    "heads_not_summed": ("unit_engine_layers", "All/Families.LossAndGradientsAreThoseOfTransformers/llama_free_float64"),
    "padding_trained": ("unit_engine_layers", "All/Families.LossAndGradientsAreThoseOfTransformers/llama_free_float64"),
    "positions_go_on": ("unit_engine_data", "Loader.HandCalculation"),
    "init_by_rank": ("parity_resume", "Run.EveryLayoutTrainsTheSame"),
    "order_by_rank": ("parity_resume", "Run.EveryLayoutTrainsTheSame"),
    "row_twice": ("parity_resume", "Resume.OnTheSameLayoutIsBitExact"),
    "adam_step_restarts": ("parity_resume", "Resume.OnTheSameLayoutIsBitExact"),
    "moment_not_restored": ("parity_resume", "Resume.OnTheSameLayoutIsBitExact"),
    "learning_rate_late": ("unit_engine_train", "LearningRate.WarmsUpThenFollowsTheCosine"),
    "attention_zeroed": ("unit_engine_layers", "All/Families.LossAndGradientsAreThoseOfTransformers/llama_free_float64"),
    "saved_late": ("unit_engine_checkpoint", "Saving.HoldsWhatWasThereWhenTheCopyWasTaken"),
    "offload_lost": ("parity_layouts", "All/Offload.GivesTheBitsOfResidentState/adamw_one"),
    "bias_on_every_rank": ("unit_engine_layers", "All/Tensor.EqualsOneRankInFloat64/gpt2_tp4_all"),
    "local_vocabulary": ("unit_engine_layers", "All/Tensor.EqualsOneRankInFloat64/llama_tp2_all"),
    "loss_on_every_rank": ("unit_engine_layers", "All/Tensor.EqualsOneRankInFloat64/llama_tp2_all"),
    "key_value_sum_missing": ("parity_tensor", "All/TensorLayouts.EqualOneProcessInFloat64/llama_tp4"),
    "tensor_sum_missing": ("parity_tensor", "All/TensorLayouts.EqualOneProcessInFloat64/llama_tp2"),
    "tied_sum_missing": ("parity_pipeline", "All/Pipelines.EqualOneProcessInFloat64/gpipe_pp4_tied"),
    "norm_of_copies": ("unit_engine_execute", "StepEnd.TheNormCountsCopiesOnce"),
    "experts_untrained": ("unit_engine_layers", "All/Families.LossAndGradientsAreThoseOfTransformers/mixtral_float64"),
    "router_detached": ("unit_engine_layers", "All/Families.LossAndGradientsAreThoseOfTransformers/deepseek_v3_float64"),
    "idle_expert_skipped": ("unit_engine_layers", "All/Families.LossAndGradientsAreThoseOfTransformers/deepseek_v3_float64"),
    "shared_key_lost": ("unit_engine_layers", "All/Families.LossAndGradientsAreThoseOfTransformers/deepseek_v2_float64"),
    "capacity_of_batch": ("parity_experts", "FamiliesByLayouts/Experts.DropTheSameTokens/mixtral_accumulate4"),
    "balance_of_first_row": ("parity_experts",
                             "FamiliesByLayouts/Experts.EqualOneProcessInFloat64/mixtral_accumulate4"),
    "capacity_by_rank": ("parity_experts", "All/SharedExperts.DropTheSameTokens/mixtral_ring2"),
    "balance_of_own_tokens": ("parity_experts", "All/SharedExperts.EqualOneProcessInFloat64/mixtral_ring2"),
    "router_sum_missing": ("parity_experts", "All/SharedExperts.EqualOneProcessInFloat64/deepseek_v3_tp4"),
    "expert_rows_by_rank": ("parity_experts", "All/ExpertRanks.EqualOneProcessInFloat64/qwen3_moe_dp2_ep2"),
    "expert_parts_not_summed": ("parity_experts", "All/ExpertRanks.EqualOneProcessInFloat64/mixtral_dp2_etp2"),
    "experts_over_dense": ("parity_experts", "All/ExpertRanks.EqualOneProcessInFloat64/deepseek_v3_dp4_ep2"),
    "experts_counted_twice": ("parity_experts", "All/ExpertRanks.EqualOneProcessInFloat64/deepseek_v3_dp4_ep2"),
    "local_positions": ("parity_context", "All/ContextLayouts.EqualOneProcessInFloat64/llama_ulysses4"),
    "ring_not_merged": ("parity_context", "All/ContextLayouts.EqualOneProcessInFloat64/llama_ring2"),
    "key_value_copies_not_summed": ("parity_context", "All/ContextLayouts.EqualOneProcessInFloat64/llama_ulysses4"),
    "head_parts_not_summed": ("parity_pipeline", "All/SpreadVocabulary.EqualOneProcessInFloat64/1f1b_pp2"),
    "spread_rows_not_learned": ("parity_pipeline", "All/SpreadVocabulary.EqualOneProcessInFloat64/tied_1f1b_pp2"),
    "queued_overwritten": ("parity_pipeline", "All/Pipelines.EqualOneProcessInFloat64/zb_h1_pp2"),
    "stash_freed_at_input": ("parity_pipeline", "All/Pipelines.HoldWhatIsPredicted/zb_h1_pp2"),
    "sends_kept": ("parity_pipeline", "All/Pipelines.HoldWhatIsPredicted/1f1b_pp4"),
    "mean_of_means": ("parity_layouts", "All/Layouts.EqualOneProcessInFloat64/accumulate4_messages"),
    "targets_of_whole_rows": ("parity_context", "All/ContextLayouts.EqualOneProcessInFloat64/llama_ring2"),
    "vocabulary_repeated": ("unit_engine_layers", "All/Tensor.EqualsOneRankInFloat64/llama_tp2_all"),
    "norm_without_experts": ("parity_experts", "RouterBias.FollowsTheLoads"),
    "heads_interleaved": ("unit_engine_layers", "All/Families.LossAndGradientsAreThoseOfTransformers/llama_free_float64"),
    "turned_back_late": ("unit_engine_layers", "All/Families.LossAndGradientsAreThoseOfTransformers/qwen3_float64"),
    "ring_gradients_lost": ("parity_context", "All/ContextLayouts.EqualOneProcessInFloat64/llama_ring2"),
    "first_target_dropped": ("unit_engine_data", "Loader.HandCalculation"),
    "end_not_learned": ("unit_engine_data", "Loader.HandCalculation"),
    "row_lost": ("parity_resume", "Resume.OnTheSameLayoutIsBitExact"),
    "carried_lost": ("unit_engine_data", "Loader.AChangeOfShapeLosesAndRepeatsNothing"),
    "auxiliary_dropped": ("unit_engine_layers", "Families/RouterLosses.GradientsAreThoseOfThePlainFormulas/qwen3_moe_ring1_ulysses1_tp1"),
    "routed_again": ("parity_experts", "FamiliesByLayouts/Experts.DropTheSameTokens/mixtral_recompute"),
    "experts_start_at_zero": ("unit_engine_state", "InitialValues.OfEachExpertAreItsOwn"),
    "shards_swapped": ("unit_engine_checkpoint", "Foreign.OursLoadsOnOtherRanks"),
}


def run(program, test, bug):
    environment = dict(os.environ)
    environment.pop("PTRAIN_TEST_BUG", None)
    if bug:
        environment["PTRAIN_TEST_BUG"] = bug
    command = [program, f"--gtest_filter={test}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def ran(result):
    return "Running " in result.stdout and "Running 0 tests" not in result.stdout


def main():
    folder = pathlib.Path(sys.argv[1])
    os.environ["PTRAIN_SOURCE_DIR"] = sys.argv[2]
    failures = 0
    controls = {}
    for bug in sys.argv[3:] or CAUGHT_BY:
        name, test = CAUGHT_BY[bug]
        program = folder / f"planted_{name}"
        if (name, test) not in controls:
            control = run(program, test, None)
            controls[name, test] = control.returncode == 0 and ran(control)
        planted = run(program, test, bug)
        caught = planted.returncode != 0 and ran(planted)
        seen = "caught by" if caught else "NOT CAUGHT BY"
        without = "" if controls[name, test] else "   FAILS WITHOUT THE BUG TOO"
        print(f"{bug:24} {seen} {name} {test}{without}", flush=True)
        failures += not caught or not controls[name, test]
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
