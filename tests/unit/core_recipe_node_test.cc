#include <gtest/gtest.h>

#include "core/recipe/node.h"

namespace ptrain::recipe {
namespace {

Node scalar(std::string key, std::string text, int line) {
  Node node;
  node.kind = text.empty() ? Node::Kind::kNull : Node::Kind::kScalar;
  node.text = std::move(text);
  node.key = std::move(key);
  node.key_place = {"r.yaml", line, 1};
  node.place = {"r.yaml", line, 9};
  return node;
}

Node document() {
  Node item = scalar("", "x", 3);
  Node list = scalar("list", "-", 2);
  list.kind = Node::Kind::kSequence;
  list.children = {item, item};
  Node root = scalar("", "-", 1);
  root.kind = Node::Kind::kMapping;
  root.children = {list, scalar("empty", "", 5)};
  return root;
}

TEST(Node, FindsChildrenByKeyAndByPosition) {
  const Node root = document();
  ASSERT_NE(root.child("list"), nullptr);
  EXPECT_NE(root.child("list")->child("1"), nullptr);
  for (const std::string_view name : {"2", "-1", "1x", "", "99999999999999999999"}) {
    EXPECT_EQ(root.child("list")->child(name), nullptr) << name;
  }
  EXPECT_EQ(root.child("lists"), nullptr);
}

TEST(Node, PlacesAreOfTheValueOrOfWhatIsNearest) {
  const Node root = document();
  EXPECT_EQ(place_of(root, "list.1"), (Place{"r.yaml", 3, 9}));
  EXPECT_EQ(place_of(root, "list"), (Place{"r.yaml", 2, 9}));
  EXPECT_EQ(place_of(root, "list.7.x"), (Place{"r.yaml", 2, 1}));
  EXPECT_EQ(place_of(root, "empty"), (Place{"r.yaml", 5, 1}));  // no value: the key
  EXPECT_EQ(place_of(root, "other.a"), (Place{"r.yaml", 1, 9}));
}

TEST(Node, ReportsAreInTheOrderOfTheFile) {
  const Error error = report("it", {{{"b", 2, 1}, "x", "late"},
                                    {{"b", 1, 7}, "", "second"},
                                    {{"b", 1, 3}, "y.z", "first"},
                                    {{"override 'a'", 0, 0}, "a", "no place"}});
  EXPECT_EQ(error.code, ExitCode::kUsage);
  EXPECT_EQ(error.message,
            "it has 4 errors\n  b:1:3: y.z: first\n  b:1:7: second\n  b:2:1: x: late\n"
            "  override 'a': a: no place");
}

TEST(Node, ShownTextsAreFitForATerminal) {
  EXPECT_EQ(shown("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(shown("\x1B[31m\n"), "\\x1b[31m\\x0a");
  EXPECT_EQ(shown("\xC2\x9B"), "\\x9b");  // the other way to begin a control sequence
  EXPECT_EQ(shown(std::string(61, 'a')), std::string(60, 'a') + "...");
  // Not cut inside a character.
  EXPECT_EQ(shown(std::string(59, 'a') + "\xC3\xA9z"), std::string(59, 'a') + "\xC3\xA9...");
}

}  // namespace
}  // namespace ptrain::recipe
