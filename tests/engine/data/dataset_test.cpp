#include "engine/data/dataset.h"

#include <cmath>
#include <limits>

#include "engine/data/synthetic.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using convoy::testing::expect_error;

TEST_CASE("normalisation: a deviation of 0 is refused") {
  check_normalisation(kImageNetNormalisation);
  Normalisation n = kImageNetNormalisation;
  n.deviation[1] = 0;
  expect_error(ErrorKind::usage, {"deviation 0", "channel 1"}, [&] { check_normalisation(n); });
  n.deviation[1] = std::numeric_limits<float>::quiet_NaN();
  expect_error(ErrorKind::usage, {"channel 1"}, [&] { check_normalisation(n); });
  n = kImageNetNormalisation;
  n.mean[2] = std::numeric_limits<float>::infinity();
  expect_error(ErrorKind::usage, {"channel 2"}, [&] { check_normalisation(n); });
}

TEST_CASE("first samples: a limit keeps the first ones") {
  auto all = synthetic_images({1, 0, 20}, 8, 4);
  auto some = first_samples(all, 7);
  CHECK(some->size() == 7);
  CHECK(some->label(5) == all->label(5));
  CHECK(some->read(6).pixels == all->read(6).pixels);
  CHECK(some->image_path_or_name(6) == all->image_path_or_name(6));
  CHECK(some->fingerprint() != all->fingerprint());
  CHECK(some->normalisation() == all->normalisation());
  CHECK(some->augment_rule() == all->augment_rule());
  CHECK(first_samples(all, 20) == all);
  CHECK(first_samples(all, 100) == all);
  expect_error(ErrorKind::usage, {"--limit 0"}, [&] { first_samples(all, 0); });
}

TEST_CASE("synthetic images: seed and number decide, classes differ") {
  auto a = synthetic_images({1, 0, 20}, 16, 4);
  auto b = synthetic_images({1, 0, 20}, 16, 4);
  auto other = synthetic_images({2, 0, 20}, 16, 4);
  auto later = synthetic_images({1, 4, 20}, 16, 4);
  CHECK(a->read(5).pixels == b->read(5).pixels);
  CHECK(a->read(5).pixels != other->read(5).pixels);
  CHECK(a->read(5).pixels == later->read(1).pixels);
  CHECK(a->read(5).pixels != a->read(9).pixels);
  CHECK(a->label(5) == 1);
  CHECK(a->fingerprint() == b->fingerprint());
  CHECK(a->fingerprint() != other->fingerprint());
  expect_error(ErrorKind::usage, {"0 images"}, [] { synthetic_images({1, 0, 0}, 8, 2); });
  expect_error(ErrorKind::usage, {"0 classes"}, [] { synthetic_images({1, 0, 5}, 8, 0); });
}

TEST_CASE("synthetic images: mean and deviation are about those that are stated") {
  auto set = synthetic_images({3, 0, 50}, 32, 10);
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (int i = 0; i < 50; ++i) {
    for (std::uint8_t v : set->read(i).pixels) {
      double p = v / 255.0;
      sum += p;
      squares += p * p;
      ++count;
    }
  }
  double mean = sum / count;
  CHECK(std::abs(mean - set->mean()[0]) < 0.05);
  CHECK(std::abs(std::sqrt(squares / count - mean * mean) - set->deviation()[0]) < 0.05);
}

TEST_CASE("synthetic rows: targets are one linear map of the features") {
  auto set = synthetic_rows({7, 0, 40}, 2, 1);
  CHECK(set->kind() == SampleKind::rows);
  // y = b + w0 x0 + w1 x1: three rows give b and w, the others must agree.
  float x[40][2];
  float y[40];
  for (int i = 0; i < 40; ++i) set->read_row(i, x[i], &y[i]);
  double a0 = x[1][0] - x[0][0], a1 = x[1][1] - x[0][1], r0 = y[1] - y[0];
  double c0 = x[2][0] - x[0][0], c1 = x[2][1] - x[0][1], r1 = y[2] - y[0];
  double determinant = a0 * c1 - a1 * c0;
  REQUIRE(std::abs(determinant) > 1e-3);
  double w0 = (r0 * c1 - a1 * r1) / determinant;
  double w1 = (a0 * r1 - r0 * c0) / determinant;
  for (int i = 3; i < 40; ++i) {
    double expected = y[0] + w0 * (x[i][0] - x[0][0]) + w1 * (x[i][1] - x[0][1]);
    CHECK(std::abs(y[i] - expected) < 1e-4);
    CHECK((x[i][0] >= -1 && x[i][0] < 1));
  }
  expect_error(ErrorKind::internal, {"row"}, [&] { set->read(0); });
  expect_error(ErrorKind::usage, {"0 targets"}, [] { synthetic_rows({1, 0, 5}, 3, 0); });
}

TEST_CASE("labels: the first one out of range is said") {
  auto set = synthetic_images({1, 0, 20}, 8, 3);
  check_labels(*set, 3);
  check_labels(*set, 5);
  expect_error(ErrorKind::data, {"synthetic image 2", "label 2", "0..1"},
               [&] { check_labels(*set, 2); });
  expect_error(ErrorKind::usage, {"classes: 0"}, [&] { check_labels(*set, 0); });
}
