#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/data/tokenizer.h"

namespace ptrain::data {

// The tokenizer of a SentencePiece model: pieces by its own rules, documents ended by its end of
// sentence, no beginning of sentence. Every part of a document but the first is encoded without the
// blank that the model may put before a text. `path` is its name in errors. EngineError
// (kUnusable): see open_tokenizer.
std::unique_ptr<Tokenizer> open_sentencepiece(std::string_view model, const std::string& path);

}  // namespace ptrain::data
