#include "tests/parity/expectations.h"

#include <gtest/gtest.h>

namespace ptrain::parity {

Experiment on_one_rank(const Experiment& experiment) {
  Experiment reference = experiment;
  const mesh::Layout& layout = experiment.layout;
  reference.layout = {};
  reference.layout.layer_dtypes = layout.layer_dtypes;
  reference.layout.micro_batch =
      layout.micro_batch * layout.num_micro_batches * layout.num_data_ranks();
  return reference;
}

void expect_losses(const Trajectory& run, const Trajectory& truth, double tolerance) {
  ASSERT_EQ(run.losses.size(), truth.losses.size());
  for (std::size_t i = 0; i < truth.losses.size(); ++i)
    EXPECT_NEAR(run.losses[i], truth.losses[i], tolerance * truth.losses[i]) << "step " << i + 1;
}

void expect_norms(const Trajectory& run, const Trajectory& truth, double tolerance) {
  ASSERT_EQ(run.grad_norms.size(), truth.grad_norms.size());
  for (std::size_t i = 0; i < truth.grad_norms.size(); ++i)
    EXPECT_NEAR(run.grad_norms[i], truth.grad_norms[i], tolerance * truth.grad_norms[i])
        << "step " << i + 1;
}

void expect_gradients(const Trajectory& run, const Trajectory& truth, double tolerance,
                      std::string_view left_out) {
  ASSERT_EQ(run.first_gradients.size(), truth.first_gradients.size());
  for (const auto& [name, gradient] : truth.first_gradients) {
    if (!left_out.empty() && name.ends_with(left_out)) continue;
    EXPECT_LT(relative_distance(run.first_gradients.at(name), gradient), tolerance) << name;
  }
}

void expect_parameters(const Trajectory& run, const Trajectory& truth, double bound) {
  for (const auto& [name, parameter] : truth.final_parameters)
    for (std::size_t i = 0; i < parameter.size(); ++i)
      ASSERT_NEAR(run.final_parameters.at(name)[i], parameter[i], bound) << name << "[" << i << "]";
}

void expect_routers(const Trajectory& run, const Trajectory& truth, double tolerance) {
  ASSERT_EQ(run.routers.size(), truth.routers.size());
  for (std::size_t i = 0; i < truth.routers.size(); ++i) {
    const execute::RouterReport &found = run.routers[i], &wanted = truth.routers[i];
    EXPECT_EQ(found.dropped, wanted.dropped) << "step " << i + 1;
    EXPECT_EQ(found.largest_load, wanted.largest_load) << "step " << i + 1;
    EXPECT_EQ(found.idle, wanted.idle) << "step " << i + 1;
    EXPECT_EQ(found.num_experts, wanted.num_experts);
    EXPECT_NEAR(found.balance_loss, wanted.balance_loss, tolerance * wanted.balance_loss);
    EXPECT_NEAR(found.z_loss, wanted.z_loss, tolerance * wanted.z_loss);
    EXPECT_NEAR(found.entropy, wanted.entropy, tolerance * wanted.entropy);
  }
}

double bound_of_parameters(const Experiment& experiment) {
  return 1e-6 * experiment.learning_rate * experiment.num_steps;
}

void expect_losses_and_norms(const Trajectory& run, const Trajectory& truth, double tolerance) {
  expect_losses(run, truth, tolerance);
  expect_norms(run, truth, tolerance);
}

void expect_one_process_in_float64(const Experiment& experiment, std::string_view left_out) {
  const Trajectory run = train(experiment), truth = train(on_one_rank(experiment));
  EXPECT_EQ(run.initial_parameters, truth.initial_parameters);
  expect_losses_and_norms(run, truth, 1e-9);
  expect_gradients(run, truth, 1e-9, left_out);
  expect_parameters(run, truth, bound_of_parameters(experiment));
}

void expect_one_process_in_float32(Experiment experiment) {
  experiment.num_steps = 10;
  experiment.learning_rate = 1e-3;
  const Trajectory run = train(experiment);
  expect_losses_and_norms(run, train(on_one_rank(experiment)), 1e-5);
  EXPECT_EQ(run.losses, train(experiment).losses);
}

void expect_experts_of_one_process_in_bfloat16(Experiment experiment) {
  experiment.model.initializer_range = 0.3;
  experiment.num_steps = 1;
  const Trajectory run = train(experiment), truth = train(on_one_rank(experiment));
  expect_losses(run, truth, 5e-4);
  expect_gradients(run, truth, 2e-2);
}

void expect_same_bits(const Trajectory& run, const Trajectory& truth) {
  EXPECT_EQ(run.losses, truth.losses);
  EXPECT_EQ(run.grad_norms, truth.grad_norms);
  EXPECT_EQ(run.final_parameters, truth.final_parameters);
}

void expect_repeats(const Experiment& experiment) {
  const Trajectory first = train(experiment), second = train(experiment);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.final_parameters, second.final_parameters);
}

void expect_predicted_bytes(const Experiment& experiment, const Trajectory& run,
                            std::span<const program::MemoryClass> classes) {
  for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank)
    for (const program::MemoryClass memory_class : classes) {
      const auto index = static_cast<std::size_t>(memory_class);
      EXPECT_EQ(run.peak_bytes[rank][index].value, run.predicted_bytes[rank][index].value)
          << program::to_string(memory_class) << " of rank " << rank << " in "
          << mesh::to_string(experiment.layout);
    }
}

}  // namespace ptrain::parity
