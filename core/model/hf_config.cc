#include "core/model/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/family.h"
#include "core/model/hf_experts.h"
#include "core/model/hf_reader.h"
#include "core/model/hf_rope.h"
#include "core/model/hf_words.h"
#include "core/model/layer_types.h"

namespace ptrain::model {
namespace {

using nlohmann::json;

// Fields that no training depends on: labels, caches, tokens, versions, generation.
constexpr std::string_view kNoEffect[] = {"_name_or_path",
                                          "_sliding_window_pattern",
                                          "architectures",
                                          "auto_map",
                                          "bos_token_id",
                                          "cache_implementation",
                                          "chunk_size_feed_forward",
                                          "dtype",
                                          "eos_token_id",
                                          "id2label",
                                          "is_encoder_decoder",
                                          "label2id",
                                          "max_window_layers",
                                          "model_type",
                                          "n_ctx",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "pad_token_id",
                                          "pretraining_tp",
                                          "problem_type",
                                          "return_dict",
                                          "sliding_window",
                                          "sliding_window_pattern",
                                          "summary_activation",
                                          "summary_first_dropout",
                                          "summary_proj_to_labels",
                                          "summary_type",
                                          "summary_use_proj",
                                          "task_specific_params",
                                          "torch_dtype",
                                          "transformers_version",
                                          "use_cache",
                                          "use_sliding_window"};

constexpr std::string_view kDropouts[] = {"attention_dropout", "attn_pdrop", "embd_pdrop",
                                          "resid_pdrop", "hidden_dropout"};

// Reads the config of one family.
class Importer {
 public:
  Importer(const json& object, const Family& family)
      : family_(family), reader_(object, "", reasons_) {
    result_.model = family.hf.defaults;
    result_.model.family = family.name;
    if (uses("rope_theta") && result_.model.rope_theta == 0) result_.model.rope_theta = 1e4;
  }

  Result<HfConfig> read() {
    sizes();
    for (const std::string_view field : family_.fields) optional(field);
    if (uses("rope_theta"))
      read_rope(reader_, uses("rope_local_base_freq"), model(), reasons_, result_.warnings);
    if (uses("sliding_window")) windows();
    read_experts(reader_, family_, model(), result_.warnings);
    for (const auto& [name, wanted] : family_.hf.fixed) fixed(name, wanted);
    foreign();
    if (!reasons_.empty())
      return fail(ExitCode::kUsage,
                  fmt::format("a model that cannot be trained here: {}", fmt::join(reasons_, "; ")),
                  result_.warnings.empty()
                      ? "choose another model or wait for a version that has what it needs"
                      : fmt::format("beside it: {}", fmt::join(result_.warnings, "; ")));
    PTRAIN_TRY(result_.model, complete(std::move(result_.model)));
    return std::move(result_);
  }

  // After read().
  bool knows(const std::string& field) const { return reader_.knows(field); }

 private:
  recipe::Model& model() { return result_.model; }
  bool uses(std::string_view field) const { return family_.uses(field); }
  std::string name_of(std::string_view field) const { return family_.hf.name_of(field); }
  template <class T>
  void read(std::string_view field, T& value) {
    reader_.read(name_of(field), value);
  }

  void positive(std::string_view field, double& value) {
    reader_.read_positive(name_of(field), value);
  }

  void sizes() {
    required("vocab_size", model().vocab_size);
    required("hidden_size", model().hidden_size);
    required("num_hidden_layers", model().num_hidden_layers);
    required("num_attention_heads", model().num_attention_heads);
    if (uses("num_key_value_heads")) required("intermediate_size", model().intermediate_size);
    read("intermediate_size", model().intermediate_size);  // may be null in gpt2
    read("max_position_embeddings", model().max_position_embeddings);
    read("initializer_range", model().initializer_range);
    read("tie_word_embeddings", model().tie_word_embeddings);
  }

  void required(std::string_view field, std::int64_t& value) {
    read(field, value);
    if (value == 0) reader_.refuse(name_of(field), "missing or 0");
  }

  void optional(std::string_view field) {
    if (field == "num_key_value_heads") read(field, model().num_key_value_heads);
    if (field == "head_dim") read(field, model().head_dim);
    if (field == "hidden_act") activation();
    if (field == "attention_bias") read(field, model().attention_bias);
    if (field == "mlp_bias") read(field, model().mlp_bias);
    if (field == "rms_norm_eps") positive(field, model().rms_norm_eps);
    if (field == "layer_norm_eps") positive(field, model().layer_norm_eps);
    if (field == "query_pre_attn_scalar") positive(field, model().query_pre_attn_scalar);
    if (field == "attn_logit_softcapping") read(field, model().attn_logit_softcapping);
    if (field == "final_logit_softcapping") read(field, model().final_logit_softcapping);
  }

  void activation() {
    const std::string name = name_of("hidden_act");
    std::string word;
    reader_.read(name, word);
    if (name != "hidden_act" && word.empty()) reader_.read("hidden_act", word);
    if (word.empty()) return;
    if (const auto activation = value_of(kActivationWords, word)) {
      model().hidden_act = *activation;
    } else {
      reader_.refuse(name, fmt::format("'{}' is not known; allowed: silu, gelu, gelu_new, "
                                       "gelu_pytorch_tanh",
                                       word));
    }
  }

  void windows() {
    reader_.read("sliding_window", model().sliding_window);
    if (uses("max_window_layers")) reader_.read("max_window_layers", model().max_window_layers);
    bool has_window = !family_.hf.has_window_switch;
    reader_.read("use_sliding_window", has_window);
    if (!has_window) model().sliding_window = 0;
    if (uses("layer_types")) layer_types();
    if (model().sliding_window == 0) model().max_window_layers = 0;
  }

  void layer_types() {
    const json* found = reader_.find("layer_types");
    if (found == nullptr || found->is_null()) return pattern();
    std::vector<std::string> words;
    if (found->is_array())
      for (const json& word : *found) words.push_back(word.is_string() ? word : json(""));
    if (std::ssize(words) < model().num_hidden_layers)
      return reader_.refuse("layer_types", "needs a word for every layer");
    for (const std::string& word : words)
      if (word != kFullAttention && word != kSlidingAttention)
        return reader_.refuse("layer_types",
                              fmt::format("'{}' is not known; allowed: {}, {}", word.substr(0, 60),
                                          kFullAttention, kSlidingAttention));
    words.resize(static_cast<std::size_t>(std::max<std::int64_t>(model().num_hidden_layers, 0)));
    model().max_window_layers = 0;
    const bool slides = std::find(words.begin(), words.end(), kSlidingAttention) != words.end();
    if (slides || !family_.hf.has_window_switch) model().layer_types = repeated(words);
    if (!slides && family_.hf.has_window_switch) model().sliding_window = 0;
  }

  // The shortest words that give all when they are repeated.
  static std::string repeated(const std::vector<std::string>& words) {
    std::size_t period = 1;
    const auto repeats = [&] {
      for (std::size_t i = period; i < words.size(); ++i)
        if (words[i] != words[i - period]) return false;
      return true;
    };
    while (!repeats()) ++period;
    period = std::min(period, words.size());
    return fmt::format("{}", fmt::join(words.begin(), words.begin() + std::ptrdiff_t(period), ","));
  }

  // gemma3 before layer_types: the last of every so many layers has no window.
  void pattern() {
    std::int64_t period = 0;
    reader_.read("sliding_window_pattern", period);
    if (period == 0) reader_.read("_sliding_window_pattern", period);
    if (period == 0 || family_.name != "gemma3") return;
    for (std::int64_t i = 1; i < std::min<std::int64_t>(period, model().num_hidden_layers + 1); ++i)
      model().layer_types += fmt::format("{},", kSlidingAttention);
    model().layer_types += kFullAttention;
  }

  void fixed(const std::string& name, bool wanted) {
    bool found = wanted;
    reader_.read(name, found);
    if (found != wanted) reader_.refuse(name, fmt::format("only {} is available", wanted));
  }

  void foreign() {
    for (const std::string_view name : kNoEffect) reader_.find(std::string(name));
    for (const std::string_view name : kDropouts) dropout(std::string(name));
    if (const json* found = reader_.find("quantization_config"); found && !found->is_null())
      reader_.refuse("quantization_config", "quantised weights cannot be trained here");
    for (const char* name : {"attn_logit_softcapping", "final_logit_softcapping"}) {
      double softcap = 0;
      if (!uses(name)) reader_.read(name, softcap);
      if (softcap != 0) reader_.refuse(name, "this family has none");
    }
    for (std::string& sentence : reader_.unused()) result_.warnings.push_back(std::move(sentence));
  }

  void dropout(const std::string& name) {
    double share = 0;
    reader_.read(name, share);
    if (share == 0) return;
    result_.warnings.push_back(
        fmt::format("{} is {}, but training here has no dropout", name, share));
  }

  const Family& family_;
  std::vector<std::string> reasons_;
  HfReader reader_;
  HfConfig result_;
};

// `at` counts from 1.
std::string line_and_column(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at == 0 ? 0 : at - 1);
  const auto begin = before.rfind('\n') + 1;  // 0 where there is no earlier line
  return fmt::format("line {}, column {}", 1 + std::ranges::count(before, '\n'),
                     1 + before.size() - begin);
}

constexpr const char* kCopyAgain = "copy or download it again, with the rest of its folder";

Result<json> parse(std::string_view text) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    return fail(ExitCode::kUsage,
                "config.json is not JSON from " + line_and_column(text, error.byte) + " on",
                kCopyAgain);
  } catch (const json::exception&) {
    return fail(ExitCode::kUsage, "config.json holds a number that is too large", kCopyAgain);
  }
}

// What a new family would have to bring: the fields that none here reads.
std::string foreign_fields(const json& object) {
  constexpr std::size_t kMost = 12, kLongest = 60;
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  for (const Family& family : all_families()) {
    Importer importer(object, family);
    static_cast<void>(importer.read());  // for what it asks for, whether it can be trained or not
    std::erase_if(names, [&](const std::string& name) { return importer.knows(name); });
  }
  if (names.empty()) return "";
  const bool more = names.size() > kMost;
  names.resize(std::min(names.size(), kMost));
  for (std::string& name : names) name.resize(std::min(name.size(), kLongest));
  return fmt::format("; it also has fields that no family here reads: {}{}", fmt::join(names, ", "),
                     more ? ", ..." : "");
}

}  // namespace

Result<HfConfig> from_hf_config(std::string_view config_json) {
  PTRAIN_TRY(const json object, parse(config_json));
  if (!object.is_object())
    return fail(ExitCode::kUsage, "config.json holds no JSON object", kCopyAgain);
  const auto type = object.find("model_type");
  const std::string name =
      type != object.end() && type->is_string() ? type->get<std::string>() : "";
  std::vector<std::string> known;
  for (const Family& family : all_families()) {
    if (family.hf.model_type == name) return Importer(object, family).read();
    known.push_back(family.hf.model_type);
  }
  if (name.empty())
    return fail(ExitCode::kUsage, "config.json has no model_type", "it is not a language model's");
  return fail(ExitCode::kUsage, fmt::format("model_type '{}' is not known", name.substr(0, 60)),
              fmt::format("allowed: {}{}", fmt::join(known, ", "), foreign_fields(object)));
}

}  // namespace ptrain::model
