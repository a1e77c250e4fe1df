#include "launcher/recipe/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <optional>
#include <sstream>

#include "launcher/recipe/yaml_text.h"

namespace ptrain::recipe {
namespace {

using Kind = Node::Kind;

constexpr std::size_t kMostKeys = 1000;  // keeps the search for duplicates short

// Leaves yaml-cpp's parser after a fault that makes the rest pointless; never leaves parse_yaml.
struct Abandon {};

// Builds the nodes from the parser's events.
class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& file, std::vector<Violation>& violations)
      : file_(file), violations_(violations) {}

  Node take() { return std::move(root_); }

  void refuse(const YAML::Mark& mark, std::string message) {
    refuse(place(mark), std::move(message));
  }

  void refuse_at_last(std::string message) { refuse(last_, std::move(message)); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (num_documents_++ == 0) return;
    refuse(mark, "the file holds more than one YAML document; keep one");
    throw Abandon{};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_anchor(mark, anchor);
    add(node(Kind::kNull, mark));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not allowed; write the value out");
    add(node(Kind::kBroken, mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    Node scalar = node(Kind::kScalar, mark);
    scalar.text = value;
    scalar.quoted = tag == "!";
    add(std::move(scalar));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::kMapping, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or mapping that is being filled; `key` waits for its value.
  struct Open {
    Node node;
    std::optional<Node> key;
  };

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  Node node(Kind kind, const YAML::Mark& mark) {
    Node made;
    made.kind = kind;
    made.place = last_ = place(mark);
    return made;
  }

  void refuse(const Place& where, std::string message) {
    violations_.push_back({where, "", std::move(message)});
  }

  void check_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) refuse(mark, "anchors (&name) are not allowed; write the value out");
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    constexpr std::string_view kStandard = "tag:yaml.org,2002:";
    const bool is_standard = tag.starts_with(kStandard);
    const std::string written = is_standard ? "!!" + tag.substr(kStandard.size()) : tag;
    refuse(mark, fmt::format("the tag '{}' is not allowed; leave it out", shown(written)));
  }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    if (static_cast<int>(stack_.size()) >= kDeepestYaml) {
      refuse(mark, fmt::format("nested more than {} deep", kDeepestYaml));
      throw Abandon{};
    }
    stack_.push_back({node(kind, mark), std::nullopt});
  }

  void close() {
    Node done = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(done));
  }

  void add(Node made) {
    if (stack_.empty()) {
      root_ = std::move(made);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == Kind::kSequence) {
      parent.node.children.push_back(std::move(made));
    } else if (!parent.key) {
      parent.key = std::move(made);
    } else {
      const Node key = std::move(*parent.key);
      parent.key.reset();
      add_entry(parent.node, key, std::move(made));
    }
  }

  void add_entry(Node& mapping, const Node& key, Node value) {
    if (key.kind == Kind::kBroken) return;
    if (key.kind != Kind::kScalar) return refuse(key.place, "a key must be a plain word");
    if (mapping.children.size() >= kMostKeys) {
      refuse(key.place, fmt::format("more than {} keys in one mapping", kMostKeys));
      throw Abandon{};
    }
    if (const Node* first = mapping.child(key.text)) {
      return refuse(key.place, fmt::format("duplicate key '{}', first given in line {}",
                                           shown(key.text), first->key_place.line));
    }
    value.key = key.text;
    value.key_place = key.place;
    mapping.children.push_back(std::move(value));
  }

  const std::string& file_;
  std::vector<Violation>& violations_;
  std::vector<Open> stack_;
  Node root_;
  Place last_{file_, 1, 1};  // of the newest node
  int num_documents_ = 0;
};

// The parser takes the end of a text for the end of a quote, and everything up to there for the
// value. This mark of a document's end is none within quotes.
std::string ended(std::string_view text) {
  return std::string(text) + (text.ends_with('\n') ? "...\n" : "\n...\n");
}

bool is_open_quote(const std::string& message) {
  return message == YAML::ErrorMsg::DOC_IN_SCALAR || message == YAML::ErrorMsg::EOF_IN_SCALAR;
}

// What the parser complains about in its own words, where those are no help.
std::string reason_of(const std::string& message) {
  using namespace YAML::ErrorMsg;
  if (message.starts_with(UNKNOWN_ANCHOR) || message == ALIAS_NOT_FOUND)
    return "aliases (*name) are not allowed; quote a text that begins with *";
  if (message == UNKNOWN_TOKEN) return "not YAML: quote a text that begins with this character";
  if (message == MAP_VALUE)
    return "not YAML: a colon that no key belongs to; quote a text that holds one, and see that "
           "the line before has its own";
  return fmt::format("not YAML: {}", shown(message));
}

Node broken_node() {
  Node broken;
  broken.kind = Kind::kBroken;
  return broken;
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& file,
                std::vector<Violation>& violations) {
  if (auto violation = violation_of_text(text, file)) {
    violations.push_back(std::move(*violation));
    return broken_node();
  }
  Builder builder(file, violations);
  try {
    std::istringstream stream{ended(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Abandon&) {
    return broken_node();
  } catch (const YAML::Exception& error) {
    if (is_open_quote(error.msg))
      builder.refuse_at_last("not YAML: a quote that is opened after this is not closed");
    else
      builder.refuse(error.mark, reason_of(error.msg));
    return broken_node();
  }
  Node root = builder.take();
  if (root.kind != Kind::kNull) return root;
  builder.refuse(YAML::Mark(), "there is nothing in it");
  return broken_node();
}

}  // namespace ptrain::recipe
