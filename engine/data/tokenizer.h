#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/recipe/data.h"

namespace ptrain::data {

// A part of a document; `place` names the document in errors.
struct TextPart {
  std::string_view text;
  bool is_first = true;
  std::string_view place;
};

// Turns text into tokens and back. One thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Appends the tokens of a part of a document. Parts do not share tokens, so that what follows a
  // question is tokenised as if the question were all there is. EngineError (kUnusable) for a text
  // that it cannot encode.
  virtual void encode(const TextPart& part, std::vector<std::uint32_t>& tokens) const = 0;
  virtual std::string decode(const std::vector<std::int32_t>& tokens) const = 0;
  virtual std::uint32_t num_tokens() const = 0;  // all tokens are below it
  virtual std::uint32_t end() const = 0;         // ends a document
  virtual std::uint32_t pad() const = 0;         // fills rows
  // Whether the tokens of a text are those of its pieces, cut anywhere.
  virtual bool takes_pieces() const = 0;
};

// The tokenizer of a recipe with a file's hash; none for `none`. `folder`: what relative paths
// start from. EngineError: kUsage for a tokenizer that is not known; kUnusable for a file that is
// missing, damaged, another than the hash says, or without an end of sentence.
std::unique_ptr<Tokenizer> open_tokenizer(const recipe::Data& data, const std::string& folder);

// The recipe's data with the hash of the tokenizer's file filled in where it is left open.
recipe::Data with_tokenizer_hash(recipe::Data data, const std::string& folder);

}  // namespace ptrain::data
