#include "core/dcp/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/model/names.h"
#include "core/model/optimizer_state.h"

namespace ptrain::dcp {

namespace {

constexpr std::size_t kMostShown = 20;

// A list for people, cut where it gets long.
std::string listed(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kMostShown); ++i) text += "\n  " + lines[i];
  if (lines.size() > kMostShown) text += fmt::format("\n  and {} more", lines.size() - kMostShown);
  return text;
}

// One way of naming all parameters.
struct Naming {
  std::string prefix;
  bool torchtitan = false;

  std::vector<std::string> names_of(const std::string& name) const {
    if (torchtitan) return model::torchtitan_names(name);
    return {name};
  }
  std::string text() const {
    return fmt::format("{} names {}", torchtitan ? "torchtitan" : "Hugging Face",
                       prefix.empty() ? "without a prefix" : fmt::format("behind '{}'", prefix));
  }
};

std::vector<Naming> namings() {
  std::vector<Naming> all;
  for (const bool torchtitan : {false, true})
    for (const char* prefix : {"model.", "module.", ""}) all.push_back({prefix, torchtitan});
  return all;
}

// How a naming fits: names found, in the order of the parameters, and names that are not there.
struct Fit {
  Naming naming;
  std::vector<std::string> found;    // without the prefix
  std::vector<std::string> missing;  // with it
};

Fit fit(const Metadata& metadata, const model::Architecture& architecture, Naming naming) {
  Fit result{std::move(naming), {}, {}};
  const std::string& prefix = result.naming.prefix;
  for (const auto& parameter : architecture.parameters) {
    const auto names = result.naming.names_of(parameter.name);
    const auto there = [&](const std::string& name) {
      return metadata.tensors.contains(prefix + name);
    };
    const auto name = std::find_if(names.begin(), names.end(), there);
    if (name != names.end())
      result.found.push_back(*name);
    else if (!names.empty())
      result.missing.push_back(prefix + names.front());
    else
      result.missing.push_back(parameter.name);
  }
  return result;
}

tl::unexpected<Error> no_naming(const Metadata& metadata, const Fit& nearest) {
  std::set<std::string> found;
  for (const std::string& name : nearest.found) found.insert(nearest.naming.prefix + name);
  std::vector<std::string> others;
  for (const auto& [key, entry] : metadata.tensors)
    if (!found.contains(key) && !key.starts_with("optim")) others.push_back(key);
  return fail(ExitCode::kUnusable,
              fmt::format("the checkpoint lacks parameters of the model; nearest are {}, of which "
                          "{} are missing:{}\nbesides these it has:{}",
                          nearest.naming.text(), nearest.missing.size(), listed(nearest.missing),
                          listed(others)),
              "parameters are looked for by Hugging Face and torchtitan names, behind 'model.', "
              "'module.' or nothing; use the model section that the checkpoint was made with");
}

Result<Fit> choose_naming(const Metadata& metadata, const model::Architecture& architecture) {
  std::vector<Fit> fits;
  for (Naming& naming : namings()) fits.push_back(fit(metadata, architecture, std::move(naming)));
  std::stable_sort(fits.begin(), fits.end(),
                   [](const Fit& a, const Fit& b) { return a.missing.size() < b.missing.size(); });
  if (!fits[0].missing.empty()) return no_naming(metadata, fits[0]);
  if (fits[1].missing.empty())
    return fail(ExitCode::kUnusable,
                fmt::format("the checkpoint has two models: {}, and {}", fits[0].naming.text(),
                            fits[1].naming.text()),
                "give a checkpoint with one of them");
  return std::move(fits[0]);
}

// Where optimizer state may lie: behind either prefix, by the names with the model's prefix or
// without.
std::vector<std::string> state_prefixes(const Naming& naming) {
  std::vector<std::string> all;
  for (const char* root : {"optim.state.", "optimizer.state."}) {
    all.push_back(root);
    if (!naming.prefix.empty()) all.push_back(root + naming.prefix);
  }
  return all;
}

// Names of the optimizer state of each parameter.
std::vector<std::vector<std::string>> state_names(const model::Architecture& architecture) {
  std::vector<std::vector<std::string>> all;
  for (const auto& parameter : architecture.parameters) {
    auto& names = all.emplace_back();
    for (auto& tensor : model::state_of(parameter, architecture.dtype))
      names.push_back(std::move(tensor.name));
  }
  return all;
}

// The tensors of state that lie behind one prefix, and those that are not there.
std::pair<std::size_t, std::vector<std::string>> count_state(
    const Metadata& metadata, const Fit& fit, const std::string& prefix,
    const std::vector<std::vector<std::string>>& names) {
  std::pair<std::size_t, std::vector<std::string>> result;
  for (std::size_t i = 0; i < fit.found.size(); ++i)
    for (const std::string& name : names[i]) {
      const std::string key = fmt::format("{}{}.{}", prefix, fit.found[i], name);
      if (metadata.tensors.contains(key))
        ++result.first;
      else
        result.second.push_back(key);
    }
  return result;
}

// The prefix behind which the state of all parameters lies; empty: there is none at all.
Result<std::string> find_state(const Metadata& metadata, const Fit& fit,
                               const std::vector<std::vector<std::string>>& names) {
  std::string chosen;
  for (const std::string& prefix : state_prefixes(fit.naming)) {
    const auto [found, missing] = count_state(metadata, fit, prefix, names);
    if (found == 0) continue;
    if (!missing.empty())
      return fail(ExitCode::kUnusable,
                  fmt::format("the checkpoint has optimizer state of some parameters only; missing "
                              "are:{}",
                              listed(missing)),
                  "use an undamaged checkpoint, or one without optimizer state");
    if (!chosen.empty())
      return fail(ExitCode::kUnusable,
                  fmt::format("the checkpoint has optimizer state twice: behind '{}' and '{}'",
                              chosen, prefix),
                  "give a checkpoint with one of them");
    chosen = prefix;
  }
  return chosen;
}

// The tensors of a parameter that are read, with the shapes that they must have.
using Wanted = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;
Wanted wanted_tensors(const ParameterSource& source, const model::ParameterSpec& parameter,
                      DType dtype) {
  Wanted wanted{{source.key, parameter.shape}};
  if (source.state.empty()) return wanted;
  for (const auto& tensor : model::state_of(parameter, dtype))
    wanted.emplace_back(fmt::format("{}.{}", source.state, tensor.name), tensor.shape(parameter));
  return wanted;
}

Status check_shapes(const Metadata& metadata, const model::Architecture& architecture,
                    const Import& import) {
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < import.parameters.size(); ++i)
    for (const auto& [key, wanted] : wanted_tensors(
             import.parameters[i], architecture.parameters[i], architecture.dtype)) {
      const auto& stored = metadata.tensors.at(key).shape;
      if (stored != wanted)
        wrong.push_back(fmt::format("'{}' has the shape [{}] instead of [{}]", key,
                                    fmt::join(stored, ", "), fmt::join(wanted, ", ")));
    }
  if (wrong.empty()) return {};
  return fail(ExitCode::kUnusable, "the checkpoint is of another model:" + listed(wrong),
              "use the model section that the checkpoint was made with");
}

std::vector<std::string> unread_tensors(const Metadata& metadata,
                                        const model::Architecture& architecture,
                                        const Import& import) {
  std::set<std::string> read;
  for (std::size_t i = 0; i < import.parameters.size(); ++i) {
    const ParameterSource& source = import.parameters[i];
    for (auto& [key, shape] :
         wanted_tensors(source, architecture.parameters[i], architecture.dtype))
      read.insert(std::move(key));
    if (!source.state.empty()) read.insert(source.state + ".step");
  }
  std::vector<std::string> unread;
  for (const auto& [key, entry] : metadata.tensors)
    if (!read.contains(key) && !key.starts_with("train")) unread.push_back(key);
  return unread;
}

}  // namespace

Result<Import> find_parameters(const Metadata& metadata, const model::Architecture& architecture) {
  PTRAIN_TRY(const Fit fit, choose_naming(metadata, architecture));
  const auto names = state_names(architecture);
  const bool keeps_none = std::ranges::all_of(names, [](const auto& list) { return list.empty(); });
  PTRAIN_TRY(const std::string state, find_state(metadata, fit, names));
  Import import;
  import.naming = fit.naming.text();
  import.has_moments = keeps_none || !state.empty();
  for (std::size_t i = 0; i < fit.found.size(); ++i) {
    ParameterSource source{fit.naming.prefix + fit.found[i], "", 0};
    if (!state.empty()) source.state = state + fit.found[i];
    if (fit.naming.torchtitan)
      source.head_rows =
          model::rotary_head_rows(architecture.parameters[i].name, architecture.config);
    import.parameters.push_back(std::move(source));
  }
  PTRAIN_CHECK(check_shapes(metadata, architecture, import));
  import.unread = unread_tensors(metadata, architecture, import);
  return import;
}

std::optional<std::string> step_key(const Metadata& metadata, const Import& import) {
  std::vector<std::string> keys{"train.step", "train_state.step"};
  if (import.has_moments) keys.push_back(import.parameters.front().state + ".step");
  for (std::string& key : keys)
    if (metadata.values.contains(key) || metadata.tensors.contains(key)) return std::move(key);
  return std::nullopt;
}

}  // namespace ptrain::dcp
