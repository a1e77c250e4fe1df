#include <initializer_list>

#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/search.h"

namespace ptrain::schedule {
namespace {

using Generator = Result<Schedule> (*)(const Problem&);

// What those of `generators` make that do not refuse the problem.
std::vector<Schedule> all_of(std::initializer_list<Generator> generators, const Problem& problem) {
  std::vector<Schedule> schedules;
  for (const Generator generate : generators)
    if (auto schedule = generate(problem)) schedules.push_back(*std::move(schedule));
  return schedules;
}

}  // namespace

Result<Schedule> zb_auto(const Problem& problem) {
  return search("zb_auto", problem, all_of({zb_h1, zb_h2}, problem));
}

Result<Schedule> v_auto(const Problem& problem) {
  return search("v_auto", problem, all_of({zb_v, v_half, v_min}, problem));
}

}  // namespace ptrain::schedule
