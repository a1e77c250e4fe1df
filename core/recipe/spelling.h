#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptrain::recipe {

// Edits (insert, delete, replace, swap of neighbours) that lead from one word to the other.
int edit_distance(std::string_view a, std::string_view b);

// The candidate a user most likely meant by `word`; empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ptrain::recipe
