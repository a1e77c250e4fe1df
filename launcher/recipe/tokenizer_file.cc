#include "launcher/recipe/tokenizer_file.h"

#include <fmt/format.h>

#include "core/base/hash.h"
#include "core/data/sentencepiece_facts.h"
#include "launcher/recipe/resolve.h"

namespace ptrain::recipe {

namespace {

constexpr const char* kFile = "data.tokenizer_file";

void settle_vocabulary(std::int64_t num_pieces, Model& model,
                       const std::function<void(const char*, std::string)>& refuse) {
  if (model.vocab_size == 0) {
    model.vocab_size = padded_vocabulary(num_pieces);
  } else if (model.vocab_size < num_pieces) {
    refuse(model.hf.empty() ? "model.vocab_size" : "model.hf",
           fmt::format("the model has a vocabulary of {}, but the tokenizer has {} pieces: some "
                       "would lie beyond it",
                       model.vocab_size, num_pieces));
  }
}

}  // namespace

void settle_tokenizer(const Node& root, const FindTokenizer& find, Recipe& recipe,
                      std::vector<Violation>& violations) {
  Data& data = recipe.data;
  if (data.tokenizer != "sentencepiece" || data.tokenizer_file.empty()) return;
  const auto refuse = [&](const char* path, std::string message) {
    violations.push_back({place_of(root, path), path, std::move(message)});
  };
  const auto bytes = find(data.tokenizer_file);
  if (!bytes) return refuse(kFile, bytes.error().message);
  const auto facts = data::sentencepiece_facts(std::as_bytes(std::span(*bytes)));
  if (!facts)
    return refuse(kFile, facts.error().message + "; give the .model that SentencePiece wrote");
  if (facts->eos < 0)
    return refuse(kFile,
                  "the model has no end of sentence, which ends documents; train it with one "
                  "(--eos_id), or write tokens by scripts/prepare_data.py");
  const std::string hash = hash128_hex(*bytes);
  if (!data.tokenizer_hash.empty() && data.tokenizer_hash != hash)
    return refuse("data.tokenizer_hash", fmt::format("the tokenizer's file has {}", hash));
  data.tokenizer_hash = hash;
  settle_vocabulary(facts->num_pieces, recipe.model, refuse);
}

}  // namespace ptrain::recipe
