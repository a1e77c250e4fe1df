#include "engine/train/optimizer_settings.h"

#include <nlohmann/json.hpp>

namespace ptrain::train {
namespace {

using model::UpdateRule;
using Settings = std::vector<std::pair<std::string, nlohmann::json>>;

Settings adamw(const recipe::Optimizer& optimizer, double learning_rate, double decay) {
  return {{"lr", learning_rate},
          {"betas", {optimizer.beta1, optimizer.beta2}},
          {"eps", optimizer.eps},
          {"weight_decay", decay},
          {"amsgrad", false},
          {"maximize", false},
          {"foreach", nullptr},
          {"capturable", false},
          {"differentiable", false},
          {"fused", nullptr},
          {"decoupled_weight_decay", true}};
}

Settings muon(const recipe::Optimizer& optimizer, double learning_rate, double decay) {
  const bool matches = optimizer.muon_scale == recipe::MuonScale::kMatchRmsAdamW;
  return {{"lr", learning_rate},
          {"weight_decay", decay},
          {"momentum", optimizer.momentum},
          {"nesterov", optimizer.nesterov},
          {"ns_coefficients", {3.4445, -4.7750, 2.0315}},
          {"eps", 1e-7},
          {"ns_steps", 5},
          {"adjust_lr_fn", matches ? "match_rms_adamw" : "original"}};
}

Settings sgd(const recipe::Optimizer& optimizer, double learning_rate, double decay) {
  return {{"lr", learning_rate},
          {"momentum", optimizer.momentum},
          {"dampening", 0},
          {"weight_decay", decay},
          {"nesterov", optimizer.momentum > 0 && optimizer.nesterov},
          {"maximize", false},
          {"foreach", nullptr},
          {"differentiable", false},
          {"fused", nullptr}};
}

}  // namespace

Settings optimizer_settings(const model::ParameterSpec& parameter,
                            const recipe::Optimizer& optimizer, double learning_rate) {
  const double decay = parameter.decays ? optimizer.weight_decay : 0.0;
  switch (parameter.rule) {
    case UpdateRule::kAdamW:
      return adamw(optimizer, learning_rate * optimizer.adamw_ratio, decay);
    case UpdateRule::kAdam8bit:
      return adamw(optimizer, learning_rate, decay);
    case UpdateRule::kMuon:
      return muon(optimizer, learning_rate, decay);
    case UpdateRule::kLion:
      return {{"lr", learning_rate},
              {"betas", {optimizer.beta1, optimizer.beta2}},
              {"weight_decay", decay}};
    case UpdateRule::kBalance:
      return {{"lr", 0.0}, {"weight_decay", 0.0}};
    case UpdateRule::kSgd:
    case UpdateRule::kSgdMomentum:
      break;
  }
  return sgd(optimizer, learning_rate, decay);
}

}  // namespace ptrain::train
