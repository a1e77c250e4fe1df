#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/catalogue.h"
#include "core/schedule/simulate.h"

// Closed forms of the papers, which hold for every number of ranks and micro-batches named: what
// the generators and the simulation give must be just that.
namespace ptrain::schedule {
namespace {

struct Set {
  double a, b, w;  // F, I, W
};
const Set kSets[] = {{1, 1, 1}, {10, 11, 7}, {10, 13, 9}, {2, 2, 1}, {3, 5, 4}, {1, 2, 2}};

struct Case {
  const char* name;
  int p, v, m;
  Set cost;
  double c = 0;           // of a hop
  double overlapped = 0;  // of a pair
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.name << " p" << one.p << " v" << one.v << " m" << one.m << " a" << one.cost.a
             << " b" << one.cost.b << " w" << one.cost.w << " c" << one.c << " pair "
             << one.overlapped;
}

Simulation run(const Case& one) {
  const Problem problem{.num_ranks = one.p,
                        .num_virtual = one.v,
                        .num_micro_batches = one.m,
                        .costs = {.forward = one.cost.a,
                                  .backward_input = one.cost.b,
                                  .backward_weight = one.cost.w,
                                  .communication = one.c,
                                  .overlapped = one.overlapped}};
  const auto schedule = make(one.name, problem);
  EXPECT_TRUE(schedule) << one;
  return *simulate(*schedule, uniform_timing(*schedule, problem.costs));
}

// Makespan, or the longest span, without the work of a rank.
double bubble(const Case& one) {
  const Simulation simulation = run(one);
  return simulation.makespan - simulation.busy_max;
}

double span_bubble(const Case& one) {
  const Simulation simulation = run(one);
  return simulation.span_max - simulation.busy_max;
}

template <class Of>
std::vector<double> peaks(const Case& one, Of of) {
  std::vector<double> values;
  for (const auto& rank : run(one).ranks) values.push_back(of(rank.peak));
  return values;
}

template <class OfRank>
std::vector<double> by_rank(int p, OfRank of) {
  std::vector<double> values;
  for (int rank = 0; rank < p; ++rank) values.push_back(of(rank));
  return values;
}

constexpr auto kWeight = [](const PeakStashes& peak) { return peak.weight; };
constexpr auto kInput = [](const PeakStashes& peak) { return peak.input; };

int num_sends(const Case& one) {
  int sends = 0;
  for (const auto& rank : run(one).ranks) sends += rank.num_sends;
  return sends;
}

template <class Test>
void for_sizes(Test test) {
  for (const Set& cost : kSets)
    for (const int p : {2, 3, 4, 8})
      for (const int m : {1, 3, p, 2 * p, 2 * p + 1, 5 * p}) test(p, m, cost);
}

double all(const Set& cost) { return cost.a + cost.b + cost.w; }

TEST(Formula, Gpipe) {
  for_sizes([](int p, int m, const Set& cost) {
    for (const double c : {0.0, 1.0, 3.0}) {
      const Case one{"gpipe", p, 1, m, cost, c};
      EXPECT_DOUBLE_EQ(bubble(one), (p - 1) * all(cost) + 2 * (p - 1) * c) << one;
      EXPECT_EQ(num_sends(one), 2 * m * (p - 1)) << one;
    }
  });
}

TEST(Formula, OneForwardOneBackward) {
  for_sizes([](int p, int m, const Set& cost) {
    const Case one{"1f1b", p, 1, m, cost};
    EXPECT_DOUBLE_EQ(bubble(one), (p - 1) * all(cost)) << one;
    EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int r) { return std::min(p - r, m); })) << one;
    if (m % p != 0) return;
    const Case slow{"1f1b", p, 1, m, cost, 1};
    EXPECT_DOUBLE_EQ(run(slow).makespan,
                     (m + p - 1) * all(cost) + 2.0 * m * (p - 1) / p + 2 * (p - 2))
        << slow;
  });
}

TEST(Formula, EagerHidesHops) {
  for_sizes([](int p, int m, const Set& cost) {
    const double most = all(cost) / 2;  // that is hidden
    for (const double hop : {1.0, most}) {
      const Case slow{"eager_1f1b", p, 1, m, cost, hop};
      EXPECT_DOUBLE_EQ(bubble(slow), (p - 1) * all(cost) + 2 * (p - 1) * hop) << slow;
    }
    const Case one{"eager_1f1b", p, 1, m, cost, 1};
    EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int r) { return std::min(2 * (p - r) - 1, m); }))
        << one;
  });
}

TEST(Formula, Overlapped) {
  for_sizes([](int p, int m, const Set& cost) {
    const Case one{"1f1b_overlap", p, 1, m, cost};
    EXPECT_DOUBLE_EQ(bubble(one), (p - 1) * all(cost)) << one;
    EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int r) { return std::min(2 * (p - r), m); }))
        << one;
  });
}

TEST(Formula, Interleaved) {
  for_sizes([](int p, int m, const Set& cost) {
    if (m % p != 0) return;
    for (const int v : {2, 3}) {
      const Case one{"interleaved_1f1b", p, v, m, cost};
      EXPECT_DOUBLE_EQ(bubble(one), (p - 1) * all(cost)) << one;
      EXPECT_EQ(num_sends(one), 2 * m * (p * v - 1)) << one;
      EXPECT_EQ(
          peaks(one, kWeight),
          by_rank(p, [&](int r) { return std::min(m * v, (v - 1) * p + 2 * (p - 1 - r) + 1); }))
          << one;
    }
  });
}

TEST(Formula, BreadthFirst) {
  for_sizes([](int p, int m, const Set& cost) {
    for (const int v : {2, 3})
      for (const char* name : {"breadth_first", "breadth_first_fifo"}) {
        const Case one{name, p, v, m, cost};
        EXPECT_DOUBLE_EQ(bubble(one), ((v - 1) * (std::max(m, p) - m) + p - 1) * all(cost)) << one;
        EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int) { return m * v; })) << one;
      }
  });
}

TEST(Formula, ZeroBubble1) {
  for_sizes([](int p, int m, const Set& cost) {
    if (m < p) return;
    const Case one{"zb_h1", p, 1, m, cost};
    EXPECT_DOUBLE_EQ(bubble(one), (p - 1) * (cost.a + cost.b - std::min(cost.a, cost.w))) << one;
    EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int) { return p; })) << one;
    EXPECT_EQ(peaks(one, kInput), by_rank(p, [&](int r) { return p - r; })) << one;
  });
}

TEST(Formula, ZeroBubble2) {
  for_sizes([](int p, int m, const Set& cost) {
    if (m < 2 * p - 1) return;
    const Case one{"zb_h2", p, 1, m, cost};
    EXPECT_DOUBLE_EQ(span_bubble(one), (p - 1) * (cost.a + cost.b - 2 * std::min(cost.a, cost.w)))
        << one;
    EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int) { return 2 * p - 1; })) << one;
    EXPECT_EQ(peaks(one, kInput), by_rank(p, [&](int r) { return 2 * (p - r) - 1; })) << one;
  });
}

TEST(Formula, ZeroBubbleV) {
  for_sizes([](int p, int m, const Set& cost) {
    if (m < 2 * p) return;
    const Case one{"zb_v", p, 2, m, cost};
    EXPECT_DOUBLE_EQ(span_bubble(one), (p - 1) * std::max(2 * (cost.b - cost.w), cost.b - cost.a))
        << one;
    EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int) { return 2 * p; })) << one;
    EXPECT_EQ(num_sends(one), 2 * m * (2 * p - 2)) << one;
  });
}

TEST(Formula, InterleavedZeroBubbleHoldsAGroupMore) {
  for (const int p : {2, 4})
    for (const int v : {2, 3}) {
      const Case one{"interleaved_zb_1p", p, v, 4 * p, {1, 1, 1}};
      EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int) { return v * p; })) << one;
      EXPECT_DOUBLE_EQ(bubble(one), p - 1) << one;
    }
}

TEST(Formula, TwoStageBackward) {
  for_sizes([](int p, int m, const Set& cost) {
    for (const char* name : {"gpipe_2bp", "1f1b_2bp"}) {
      const Case one{name, p, 1, m, cost};
      EXPECT_DOUBLE_EQ(bubble(one), (p - 1) * (cost.a + cost.b)) << one;
      EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int) { return m; })) << one;
    }
  });
}

// m < 2p-1: what is made for 2p-1, without the micro-batches that are not there.
TEST(Formula, ZeroBubbleVIsTrimmed) {
  for (const int p : {2, 3, 4, 8})
    for (int m = 1; m < 2 * p - 1; ++m) {
      const auto problem = [&](int micro_batches) {
        return Problem{
            .num_ranks = p, .num_virtual = 2, .num_micro_batches = micro_batches, .costs = {}};
      };
      Schedule expected = make("zb_v", problem(2 * p - 1)).value();
      expected.num_micro_batches = m;
      for (auto& cells : expected.ranks)
        std::erase_if(cells, [&](const Cell& cell) { return cell.micro_batch >= m; });
      EXPECT_EQ(make("zb_v", problem(m)).value(), expected) << p << " " << m;
    }
}

// Published where F costs as much as I; elsewhere it is a bound.
TEST(Formula, OfDualPipesIsABound) {
  for (const int p : {2, 4, 8})
    for (const int m : {2 * p, 2 * p + 2, 5 * p})
      for (const Set& cost : kSets) {
        const double pair = all(cost);
        const Case v{"dualpipe_v", p, 2, m, cost, 0, pair};
        EXPECT_LE(run(v).makespan, (2 * (m - p) - 1) * pair + (2 * p + 1) * pair +
                                       (p - 1) * (pair + cost.b - 2 * cost.w))
            << v;
        const Case both{"dualpipe", p, 2, m, cost, 0, pair};
        EXPECT_LE(run(both).makespan,
                  (m - p - 1) * pair + (p + 1) * pair + (p / 2 - 1) * (pair + cost.b - 2 * cost.w))
            << both;
      }
}

TEST(Formula, DualPipeV) {
  for (const int p : {2, 3, 4, 8})
    for (const int m : {2 * p, 2 * p + 1, 5 * p})
      for (const Set& cost : {Set{1, 1, 1}, Set{2, 2, 1}, Set{10, 10, 7}})
        for (const double pair : {all(cost), cost.b + cost.w}) {
          const Case one{"dualpipe_v", p, 2, m, cost, 0, pair};
          EXPECT_DOUBLE_EQ(run(one).makespan, (2 * (m - p) - 1) * pair + (2 * p + 1) * all(cost) +
                                                  (p - 1) * (pair + cost.b - 2 * cost.w))
              << one;
          EXPECT_EQ(peaks(one, kWeight), by_rank(p, [&](int) { return 2 * p + 1; })) << one;
        }
}

}  // namespace
}  // namespace ptrain::schedule
