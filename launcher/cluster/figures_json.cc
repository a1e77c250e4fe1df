#include "launcher/cluster/figures_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ptrain::cluster {

namespace {

Result<double> positive(const nlohmann::json& json, const std::string& pointer) {
  const nlohmann::json::json_pointer place(pointer);
  if (!json.is_object() || !json.contains(place) || !json.at(place).is_number())
    return fail(ExitCode::kEnvironment, fmt::format("the probe's result has no number {}", pointer),
                "remove the file: the next plan measures again");
  const double value = json.at(place).get<double>();
  if (!std::isfinite(value) || value <= 0)
    return fail(ExitCode::kEnvironment,
                fmt::format("the probe's {} is {}, not above zero", pointer, value),
                "remove the file: the next plan measures again");
  return value;
}

Result<TransferCost> transfer(const nlohmann::json& json, const std::string& pointer) {
  PTRAIN_TRY(const double latency, positive(json, pointer + "/latency_s"));
  PTRAIN_TRY(const double rate, positive(json, pointer + "/bytes_per_s"));
  return TransferCost{latency, rate};
}

nlohmann::json to_json(const TransferCost& cost) {
  return {{"latency_s", cost.latency_s}, {"bytes_per_s", cost.bytes_per_s}};
}

}  // namespace

Result<Figures> figures_from_json(const nlohmann::json& json) {
  PTRAIN_TRY(const double version, positive(json, "/version"));
  if (version != 1)
    return fail(ExitCode::kEnvironment, fmt::format("a probe of version {}, not 1", version),
                "remove the file: the next plan measures again");
  Figures figures;
  PTRAIN_TRY(figures.matmul_float32, positive(json, "/matmul_flops_per_s/float32"));
  PTRAIN_TRY(figures.matmul_float64, positive(json, "/matmul_flops_per_s/float64"));
  PTRAIN_TRY(figures.memory_bytes_per_s, positive(json, "/memory_bytes_per_s"));
  PTRAIN_TRY(figures.all_gather, transfer(json, "/all_gather"));
  PTRAIN_TRY(figures.reduce_scatter, transfer(json, "/reduce_scatter"));
  figures.assumed = false;
  figures.source = "measured by a probe";
  return figures;
}

nlohmann::json to_json(const Figures& figures, int num_ranks) {
  return {{"version", 1},
          {"num_ranks", num_ranks},
          {"matmul_flops_per_s",
           {{"float32", figures.matmul_float32}, {"float64", figures.matmul_float64}}},
          {"memory_bytes_per_s", figures.memory_bytes_per_s},
          {"all_gather", to_json(figures.all_gather)},
          {"reduce_scatter", to_json(figures.reduce_scatter)}};
}

}  // namespace ptrain::cluster
