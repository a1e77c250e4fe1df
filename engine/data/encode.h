#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/index_format.h"
#include "core/recipe/data.h"
#include "engine/data/tokenizer.h"

namespace ptrain::data {

// A document as it goes into the index: its tokens, and which of them are never targets.
struct Encoded {
  std::vector<std::uint32_t> tokens;
  std::vector<TokenRange> silent;
};

// How documents become tokens.
struct Encoder {
  const Tokenizer* tokenizer = nullptr;  // none: there is no text
  recipe::LossOn loss_on = recipe::LossOn::kAnswers;
};

// A line of JSON as tokens and an end of document. {"text"}: every token is a target. {"prompt",
// "completion"}: those of the completion are. {"messages": [{role, content}]}: each message becomes
// <|im_start|>ROLE newline CONTENT<|im_end|> newline, and those of an assistant's content with its
// <|im_end|> are; roles are system, developer, user, assistant, tool, function. The end of document
// is a target where the last message or the completion is one. No token holds text that is learned
// beside such that is not. With LossOn::kAll the tokens are the same and all are targets.
// EngineError (kUnusable) that begins with `place`.
Encoded encode_json_line(std::span<const std::byte> line, const std::string& place,
                         const Encoder& encoder);

}  // namespace ptrain::data
