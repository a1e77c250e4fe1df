#include "core/safetensors/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/safetensors/json.h"

namespace ptrain::safetensors {
namespace {

constexpr std::string_view kHead = "lm_head.weight";

// What old versions of transformers stored beside the weights: masks and rotary frequencies.
constexpr std::array<std::string_view, 3> kBuffers{".attn.bias", ".attn.masked_bias",
                                                   ".rotary_emb.inv_freq"};

std::string without_prefix(const std::string& name) {
  for (const std::string_view prefix : {"model.", "transformer."})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

// The index of the parameter that embedding and head share; -1: none.
int tied_parameter(const model::Architecture& architecture) {
  const auto& embedding = architecture.layers.front().parameters;
  for (const int parameter : architecture.layers.back().parameters)
    if (std::ranges::find(embedding, parameter) != embedding.end()) return parameter;
  return -1;
}

bool is_buffer(std::string_view name) {
  return std::any_of(kBuffers.begin(), kBuffers.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

// The first part of a parameter's name in a block, `layers.N.`, with what stands before it; empty:
// it is in none.
std::string_view block_of(std::string_view name) {
  const std::size_t begin = name.find("layers.");
  if (begin == std::string_view::npos) return {};
  const std::size_t end = name.find('.', begin + std::string_view("layers.").size());
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end + 1);
}

bool is_weight(const std::string& dtype) {
  return dtype == "F32" || dtype == "BF16" || dtype == "F16" || dtype == "F64";
}

class Finder {
 public:
  Finder(const Contents& contents, const model::Architecture& architecture)
      : contents_(contents), architecture_(architecture) {
    import_.tied = tied_parameter(architecture);
  }

  Result<Import> find() {
    problems_ = contents_.problems;
    // Where nothing can be read, why is enough.
    if (contents_.tensors.empty() && !problems_.empty()) return refuse();
    choose_names();
    take_head();
    for (std::size_t i = 0; i < import_.names.size(); ++i)
      check(import_.names[i], architecture_.parameters[i].shape);
    if (!import_.tied_copy.empty())
      check(import_.tied_copy,
            architecture_.parameters[static_cast<std::size_t>(import_.tied)].shape);
    check_dtypes();
    check_rest();
    if (problems_.empty()) return std::move(import_);
    return refuse();
  }

 private:
  tl::unexpected<Error> refuse() const {
    return fail(
        ExitCode::kUnusable,
        fmt::format("the weights do not fit the model:\n  {}", fmt::join(problems_, "\n  ")),
        remedy());
  }

  std::string remedy() const {
    if (!foreign_.empty())
      return "give the weights before they were quantised, or those of transformers' "
             "model.dequantize(), saved by save_pretrained, with their own config.json";
    if (contents_.is_pickled)
      return "save them as safetensors, with transformers: "
             "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(OTHER)";
    return "give the whole folder that the model was saved to, with its own config.json; copy "
           "or download again what is cut off or missing";
  }

  bool has(const std::string& name) const {
    return contents_.tensors.contains(name) || contents_.lost.contains(name);
  }

  // Either all names begin with the first part, or none does: the naming that finds more.
  void choose_names() {
    std::vector<std::string> whole, bare;
    for (const auto& parameter : architecture_.parameters) {
      whole.push_back(parameter.name);
      bare.push_back(without_prefix(parameter.name));
    }
    const auto found = [&](const std::vector<std::string>& names) {
      return std::ranges::count_if(names, [&](const std::string& name) { return has(name); });
    };
    import_.names = found(bare) > found(whole) ? std::move(bare) : std::move(whole);
  }

  void take_head() {
    const std::string head(kHead);
    if (import_.tied < 0 || !has(head)) return;
    std::string& embedding = import_.names[static_cast<std::size_t>(import_.tied)];
    if (has(embedding))
      import_.tied_copy = head;
    else
      embedding = head;
  }

  void check(const std::string& name, const std::vector<std::int64_t>& shape) {
    if (contents_.lost.contains(name)) return;  // its file has a problem of its own
    const auto found = contents_.tensors.find(name);
    if (found == contents_.tensors.end()) return complain(name, "is missing");
    const Tensor& tensor = found->second.tensor;
    if (!is_weight(tensor.dtype)) {
      foreign_modules_.insert(name.substr(0, name.rfind('.')));
      return foreign_[tensor.dtype].push_back(name);
    }
    if (tensor.shape != shape)
      complain(name, fmt::format("has the shape [{}] instead of [{}]",
                                 fmt::join(tensor.shape, ", "), fmt::join(shape, ", ")));
  }

  // A line each, however many tensors a quantiser has changed.
  void check_dtypes() {
    for (const auto& [dtype, names] : foreign_) {
      const std::size_t more = names.size() - 1;
      complain(names.front(), fmt::format("is {}{}; weights are F32, BF16, F16 or F64", dtype,
                                          more > 0 ? fmt::format(", as are {} more", more) : ""));
    }
  }

  // Beside a quantised weight, in its module or below, there are its scales, which are no mistake
  // of their own.
  bool is_scale(const std::string& name) const {
    for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
      if (foreign_modules_.contains(name.substr(0, dot))) return true;
    return false;
  }

  void check_rest() {
    const std::set<std::string> used(import_.names.begin(), import_.names.end());
    for (const auto& [name, stored] : contents_.tensors)
      if (!used.contains(name) && name != import_.tied_copy && !is_buffer(name) &&
          !predicts_further(name) && !is_scale(name))
        complain(name, "is no parameter of the model");
  }

  // DeepSeek's layers behind the last, which predict further tokens; transformers has none either.
  bool predicts_further(std::string_view name) const {
    const std::string block(block_of(name));
    return !block.empty() && contents_.tensors.contains(block + "eh_proj.weight");
  }

  void complain(const std::string& name, std::string_view what) {
    problems_.push_back(fmt::format("'{}' {}", shown(name), what));
  }

  const Contents& contents_;
  const model::Architecture& architecture_;
  Import import_;
  std::vector<std::string> problems_;
  std::map<std::string, std::vector<std::string>> foreign_;  // names of tensors, by dtype
  std::set<std::string> foreign_modules_;                    // that those are of
};

}  // namespace

Result<Import> find_parameters(const Contents& contents, const model::Architecture& architecture) {
  return Finder(contents, architecture).find();
}

}  // namespace ptrain::safetensors
