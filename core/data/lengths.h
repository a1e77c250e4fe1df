#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/data.h"

namespace ptrain::data {

struct LengthCount {
  std::int64_t length = 0;  // inputs of a document: its tokens but the last
  std::int64_t documents = 0;
  bool operator==(const LengthCount&) const = default;
};

// How long the training documents of a token index are. The engine writes it beside the index, and
// the planner reads it: it never opens the index itself.
struct DocumentLengths {
  std::string content_hash;                       // of the index
  std::vector<std::vector<LengthCount>> sources;  // of each entry of data.train; ascending lengths
  bool operator==(const DocumentLengths&) const = default;
};

// Counts documents by length: exactly below 64 inputs, above that together at their mean those that
// differ by less than a 32nd, so that no index has more than 1,400 lengths.
class LengthCounter {
 public:
  void add(std::int64_t length);  // without inputs: nothing to train, not counted
  std::vector<LengthCount> counts() const;

 private:
  struct Class {
    std::int64_t documents = 0;
    std::int64_t inputs = 0;
  };
  std::map<std::int64_t, Class> classes_;  // by their least length
};

// The text of a summary, and the summary of such a text (docs/plan-json.md). Errors (kUnusable) say
// what is wrong with a text that is damaged, hostile or of another version.
std::string to_text(const DocumentLengths& lengths);
Result<DocumentLengths> lengths_from_text(std::string_view text);
inline constexpr std::size_t kMostLengthsBytes = std::size_t{1} << 24;

// The name of the summary in the folder of indexes: what the recipe says of its texts decides it,
// not the texts. So it tells how long they were when they were last indexed.
std::string lengths_name(const recipe::Data& data, const std::string& recipe_folder);

// Where token indexes are kept: data.cache, relative to the recipe's folder, else below the user's
// cache folder; empty without either.
std::string index_folder(const recipe::Data& data, const std::string& recipe_folder,
                         const std::string& user_cache);

}  // namespace ptrain::data
