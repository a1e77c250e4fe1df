#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ptrain::recipe {

// A document as the reader sees it, in whatever notation it was written.
struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMapping, kBroken };  // kBroken: already reported
  Kind kind = Kind::kNull;
  std::string text;  // of a scalar, without its quotes
  bool quoted = false;
  Place place;      // where the value begins
  std::string key;  // its name in the mapping that holds it
  Place key_place;
  std::vector<Node> children;  // of a mapping or a sequence

  const Node* child(std::string_view name) const;  // by key, or by position in a sequence
  Node* child(std::string_view name);
};

// The place of `a.b.0.c` in a document: of the value, of the key if there is no value, else of the
// nearest part above it.
Place place_of(const Node& root, std::string_view path);

// One fault of a document. Faults are collected: the user sees all of them at once.
struct Violation {
  Place place;
  std::string path;  // of the field or section; empty: the document
  std::string message;
  bool operator==(const Violation&) const = default;
};

// All violations as one usage error, in the order of their places, one a line. A place without a
// line is printed by its file alone.
Error report(const std::string& what, std::vector<Violation> violations);

// Text from a document made fit for a terminal: control characters escaped, long texts cut.
std::string shown(std::string_view text);

}  // namespace ptrain::recipe
