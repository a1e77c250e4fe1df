// Twenty steps of each rule beside its public reference (tests/fixtures/optim/make.py).

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/optim/adam8bit.h"
#include "engine/optim/dynamic_map.h"
#include "engine/optim/lion.h"
#include "engine/optim/muon.h"
#include "engine/optim/sgd.h"
#include "tests/support/fixture_reader.h"

namespace ptrain::optim {
namespace {

template <class T>
constexpr DType kDType = sizeof(T) == 8 ? DType::kFloat64 : DType::kFloat32;

// The reference's run, and ours on the same gradients.
template <class T>
class Replay {
 public:
  explicit Replay(const std::string& name) : file_("optim/" + name + ".bin") {
    rows_ = file_.integer(), cols_ = file_.integer(), steps_ = file_.integer();
    const auto first = file_.doubles(rows_ * cols_);
    parameter_.assign(first.begin(), first.end());
    state_.resize(first.size());
    initial_ = first;
  }

  Tensor view(std::vector<T>& values) const {
    return contiguous(values.data(), kDType<T>, rows_, cols_);
  }
  std::int64_t size() const { return rows_ * cols_; }

  // `update(step, parameter, gradient, state)` for each step; the gradients are given `factor`
  // times as large, with a scale that takes this back.
  template <class Update>
  Replay& train(Update update, double factor = 1) {
    for (std::int64_t number = 1; number <= steps_; ++number) {
      std::vector<T> gradient;
      for (const double value : file_.doubles(size()))
        gradient.push_back(static_cast<T>(value * factor));
      const Step step{.learning_rate = 0.01, .step = number, .scale = 1 / factor};
      update(step, view(parameter_), view(gradient), view(state_));
    }
    last_ = file_.doubles(size());
    return *this;
  }

  // Of the difference, relative to the distance travelled.
  double error() const {
    double difference = 0, travelled = 0;
    for (std::size_t i = 0; i < last_.size(); ++i) {
      difference += std::pow(static_cast<double>(parameter_[i]) - last_[i], 2);
      travelled += std::pow(last_[i] - initial_[i], 2);
    }
    return std::sqrt(difference / travelled);
  }

  std::vector<double> more() { return file_.doubles(size()); }

 private:
  test::FixtureReader file_;
  std::int64_t rows_ = 0, cols_ = 0, steps_ = 0;
  std::vector<T> parameter_, state_;
  std::vector<double> initial_, last_;
};

template <class T>
double sgd_error(const std::string& name, const SgdOptions& options) {
  return Replay<T>(name)
      .train([&](const Step& step, const Tensor& p, const Tensor& g, const Tensor& m) {
        sgd(options, step, p, g, options.momentum > 0 ? m : Tensor{});
      })
      .error();
}

TEST(Sgd, IsThatOfTorch) {
  const SgdOptions plain{.momentum = 0, .nesterov = false, .weight_decay = 0.1};
  const SgdOptions momentum{.momentum = 0.9, .nesterov = false, .weight_decay = 0.1};
  const SgdOptions nesterov{.momentum = 0.8, .nesterov = true, .weight_decay = 0};
  EXPECT_LT(sgd_error<double>("sgd_plain", plain), 1e-12);
  EXPECT_LT(sgd_error<double>("sgd_momentum", momentum), 1e-12);
  EXPECT_LT(sgd_error<double>("sgd_nesterov", nesterov), 1e-12);
  EXPECT_LT(sgd_error<float>("sgd_momentum", momentum), 1e-5);
}

template <class T>
double lion_error(double factor) {
  const LionOptions options{.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
  return Replay<T>("lion")
      .train([&](const Step& step, const Tensor& p, const Tensor& g,
                 const Tensor& m) { lion(options, step, p, g, m); },
             factor)
      .error();
}

TEST(Lion, IsThePublishedRule) {
  EXPECT_LT(lion_error<double>(1), 1e-12);
  EXPECT_LT(lion_error<double>(4), 1e-12);
  EXPECT_LT(lion_error<float>(1), 1e-5);
}

template <class T>
double muon_error(const std::string& name, const MuonOptions& options, double factor = 1) {
  return Replay<T>(name)
      .train(
          [&](const Step& step, const Tensor& p, const Tensor& g, const Tensor& m) {
            std::vector<T> scratch(static_cast<std::size_t>(muon_scratch(p.rows, p.cols)));
            muon(options, step, p, g, m,
                 contiguous(scratch.data(), p.dtype, 1, static_cast<std::int64_t>(scratch.size())));
          },
          factor)
      .error();
}

TEST(Muon, IsThatOfTorchInFullPrecision) {
  EXPECT_LT(muon_error<double>("muon_wide", {}), 1e-11);
  EXPECT_LT(muon_error<double>("muon_tall", {}), 1e-11);
  EXPECT_LT(muon_error<double>("muon_tall", {}, 4), 1e-11);
  EXPECT_LT(muon_error<double>("muon_match", {.weight_decay = 0.05, .match_rms_adamw = true}),
            1e-11);
  EXPECT_LT(
      muon_error<double>("muon_plain", {.momentum = 0.8, .nesterov = false, .weight_decay = 0}),
      1e-11);
  EXPECT_LT(muon_error<float>("muon_tall", {}), 1e-4);
}

// bfloat16 has 8 bits: five steps of products of two matrices leave about 1 %.
TEST(Muon, IsThatOfTorchWithinBfloat16) {
  EXPECT_LT(muon_error<double>("muon_bf16", {}), 0.02);
  EXPECT_GT(muon_error<double>("muon_bf16", {}), 1e-4);
}

// A matrix of zeros has no direction: only the decay moves it.
TEST(Muon, AZeroGradientOnlyDecays) {
  std::vector<double> parameter{1, 2, 3, 4, 5, 6}, gradient(6), momentum(6), scratch(40);
  const auto view = [](std::vector<double>& values) {
    return contiguous(values.data(), DType::kFloat64, 2, 3);
  };
  muon({}, {.learning_rate = 0.5}, view(parameter), view(gradient), view(momentum),
       contiguous(scratch.data(), DType::kFloat64, 1, 40));
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_DOUBLE_EQ(parameter[i], static_cast<double>(i + 1) * (1 - 0.5 * 0.1));
}

struct Bytes {
  explicit Bytes(std::int64_t size)
      : codes(static_cast<std::size_t>(size)),
        absmax(static_cast<std::size_t>((size + 255) / 256)) {}
  EightBitMean view() {
    return {
        contiguous(codes.data(), DType::kUInt8, 1, static_cast<std::int64_t>(codes.size())),
        contiguous(absmax.data(), DType::kFloat32, 1, static_cast<std::int64_t>(absmax.size()))};
  }
  // Codes that are not the reference's, by more than a rounding.
  std::int64_t num_other(const std::vector<double>& reference) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) count += codes[i] != reference[i] ? 1 : 0;
    return count;
  }
  std::vector<std::uint8_t> codes;
  std::vector<float> absmax;
};

// A code on the edge may round either way, by the order of float32 operations.
TEST(Adam8bit, IsTheBlockwiseRule) {
  Replay<float> run("adam8bit");
  Bytes first(run.size()), second(run.size());
  run.train([&](const Step& step, const Tensor& p, const Tensor& g, const Tensor&) {
    adam8bit({}, step, p, g, first.view(), second.view());
  });
  EXPECT_LT(run.error(), 1e-3);
  EXPECT_LE(first.num_other(run.more()), 2);
  EXPECT_LE(second.num_other(run.more()), 2);
}

// A run is updated alike wherever the tensor is cut.
TEST(Adam8bit, RunsDoNotSeeEachOther) {
  const std::int64_t size = 700, cut = 512;
  std::vector<float> whole(size), parts(size), gradient(size);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    whole[i] = parts[i] = std::sin(static_cast<float>(i));
    gradient[i] = std::cos(static_cast<float>(i * i));
  }
  const auto view = [](std::vector<float>& values, std::int64_t begin, std::int64_t end) {
    return contiguous(values.data() + begin, DType::kFloat32, 1, end - begin);
  };
  Bytes all[2]{Bytes(size), Bytes(size)}, head[2]{Bytes(cut), Bytes(cut)},
      tail[2]{Bytes(size - cut), Bytes(size - cut)};
  for (int step = 1; step <= 3; ++step) {
    const Step now{.learning_rate = 0.01, .step = step};
    adam8bit({}, now, view(whole, 0, size), view(gradient, 0, size), all[0].view(), all[1].view());
    adam8bit({}, now, view(parts, 0, cut), view(gradient, 0, cut), head[0].view(), head[1].view());
    adam8bit({}, now, view(parts, cut, size), view(gradient, cut, size), tail[0].view(),
             tail[1].view());
  }
  EXPECT_EQ(whole, parts);
  EXPECT_EQ(all[0].absmax[2], tail[0].absmax[0]);
}

// Ends, zero, and the smallest step by hand: 1e-6 x the middle of [0.1, 1].
TEST(DynamicMap, HasTheValuesOfThePaper) {
  const DynamicMap& map = DynamicMap::with_sign();
  EXPECT_EQ(map.value(255), 1.0F);
  EXPECT_EQ(map.value(127), 0.0F);
  EXPECT_FLOAT_EQ(map.value(128), 0.55e-6F);
  EXPECT_FLOAT_EQ(map.value(126), -0.55e-6F);
  EXPECT_FLOAT_EQ(map.value(0), -(0.1F + 0.9F * 63.5F / 64));
  EXPECT_EQ(DynamicMap::without_sign().value(0), 0.0F);
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    EXPECT_EQ(map.nearest(map.value(byte)), byte);
    EXPECT_EQ(DynamicMap::without_sign().nearest(DynamicMap::without_sign().value(byte)), byte);
  }
}

}  // namespace
}  // namespace ptrain::optim
