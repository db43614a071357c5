#include "engine/data/loader.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "engine/data/image_folder.h"
#include "engine/data/open_dataset.h"
#include "engine/data/order.h"
#include "engine/data/synthetic.h"
#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

LoaderOptions options_of(std::int64_t batch, int threads = 2) {
  LoaderOptions options;
  options.batch = batch;
  options.threads = threads;
  options.image_size = 8;
  options.seed = 5;
  return options;
}

std::vector<HostBatch> all_batches(Loader& loader, std::int64_t epoch, std::int64_t first = 0) {
  std::vector<HostBatch> batches;
  loader.start_epoch(epoch, first);
  while (std::optional<HostBatch> batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

std::vector<HostBatch> load(const std::shared_ptr<const Dataset>& set, const LoaderOptions& options,
                            std::int64_t epoch = 0, std::int64_t first = 0) {
  Loader loader(set, options);
  return all_batches(loader, epoch, first);
}

std::vector<std::int64_t> ids_of(const std::vector<HostBatch>& batches) {
  std::vector<std::int64_t> ids;
  for (const HostBatch& batch : batches) ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
  return ids;
}

void check_equal(const std::vector<HostBatch>& a, const std::vector<HostBatch>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].x == b[i].x);
    CHECK(a[i].labels == b[i].labels);
    CHECK(a[i].targets == b[i].targets);
    CHECK(a[i].ids == b[i].ids);
    CHECK(a[i].shape == b[i].shape);
  }
}

/// Images that end in an error, or throw something that is none of ours.
class FailingSet : public Dataset {
 public:
  enum class How { bad_image, other_error, foreign };
  FailingSet(std::set<std::int64_t> bad, How how) : bad_(std::move(bad)), how_(how) {}
  std::int64_t size() const override { return 20; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t i) const override { return i % 2; }
  std::string image_path_or_name(std::int64_t i) const override {
    return "image " + std::to_string(i);
  }
  std::string fingerprint() const override { return {}; }
  Image read(std::int64_t i) const override {
    if (bad_.contains(i)) {
      if (how_ == How::foreign) throw std::runtime_error("foreign");
      if (how_ == How::other_error) CONVOY_FAIL(resource, "image {}: no room", i);
      CONVOY_FAIL(data, "image {}: broken", i);
    }
    return testing::plain_image(8, 8, static_cast<int>(i), 0, 0);
  }

 private:
  std::set<std::int64_t> bad_;
  How how_;
  std::vector<std::string> names_ = {"a", "b"};
};

}  // namespace

TEST_CASE("loader: bitwise the same for any number of threads") {
  auto set = synthetic_images({1, 0, 37}, 12, 4);
  auto expected = load(set, options_of(5, 0), 3);
  REQUIRE(expected.size() == 8);
  CHECK(expected.back().images == 2);
  CHECK(expected[0].shape == Shape{5, 3, 8, 8});
  CHECK(expected[0].x.size() == 5 * 3 * 8 * 8);
  for (int threads : {1, 2, 7}) {
    for (int prefetch : {1, 2, 20}) {
      LoaderOptions options = options_of(5, threads);
      options.prefetch = prefetch;
      check_equal(load(set, options, 3), expected);
    }
  }
}

TEST_CASE("loader: an epoch is its order, each image once") {
  auto set = first_samples(synthetic_images({1, 0, 50}, 8, 4), 22);
  std::set<std::vector<std::int64_t>> orders;
  Loader loader(set, options_of(4));
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> ids = ids_of(all_batches(loader, epoch));
    CHECK(ids == epoch_order(5, epoch, 22));
    orders.insert(ids);
  }
  CHECK(orders.size() == 3);
  LoaderOptions eval = options_of(4);
  eval.train = false;
  CHECK(ids_of(load(set, eval)) == plain_order(22));
}

TEST_CASE("loader: from the middle of an epoch the rest is the same") {
  auto set = synthetic_images({1, 0, 23}, 8, 4);
  auto whole = load(set, options_of(4), 2);
  auto rest = load(set, options_of(4), 2, 12);
  REQUIRE(rest.size() == 3);
  CHECK(rest[0].first == 12);
  check_equal(rest, {whole.begin() + 3, whole.end()});
  std::vector<std::int64_t> ids = ids_of(load(set, options_of(7), 2, 12));  // another batch size
  CHECK(ids == ids_of(rest));
  CHECK(load(set, options_of(4), 2, 23).empty());
}

TEST_CASE("loader: replicas share each batch, every image once") {
  auto set = synthetic_images({1, 0, 97}, 8, 4);
  std::vector<std::vector<HostBatch>> shares;
  for (int replica = 0; replica < 4; ++replica) {
    LoaderOptions options = options_of(32);
    options.images = options.labels = {replica, 1};
    options.replicas = 4;
    shares.push_back(load(set, options, 1));
    REQUIRE(shares.back().size() == 4);
    CHECK(shares.back()[0].images == 8);
    CHECK(shares.back()[3].images == (replica == 0 ? 1 : 0));
    CHECK(shares.back()[3].batch_images == 1);
  }
  std::vector<std::int64_t> ids;
  for (int batch = 0; batch < 4; ++batch) {
    for (const auto& share : shares) {
      ids.insert(ids.end(), share[batch].ids.begin(), share[batch].ids.end());
    }
  }
  CHECK(ids == epoch_order(5, 1, 97));
}

TEST_CASE("loader: a process with several replicas gets the images of all of them") {
  auto set = synthetic_images({1, 0, 13}, 8, 4);  // batches of 10 and 3
  auto whole = load(set, options_of(10), 1);
  LoaderOptions options = options_of(10);
  options.images = options.labels = {1, 2};
  options.replicas = 4;  // shares of 3, 3, 2, 2 and 1, 1, 1, 0
  auto part = load(set, options, 1);
  REQUIRE(part.size() == 2);
  CHECK(part[0].shares == std::vector<std::int64_t>{3, 3, 2, 2});
  CHECK(part[1].shares == std::vector<std::int64_t>{1, 1, 1, 0});
  auto slice = [](const std::vector<std::int64_t>& ids, int begin, int end) {
    return std::vector<std::int64_t>(ids.begin() + begin, ids.begin() + end);
  };
  CHECK(part[0].ids == slice(whole[0].ids, 3, 8));
  CHECK(part[1].ids == slice(whole[1].ids, 1, 3));
}

TEST_CASE("loader: a process loads images for first stages and labels for last ones") {
  auto set = synthetic_images({1, 0, 13}, 8, 4);  // batches of 10 and 3
  LoaderOptions options = options_of(10);
  options.replicas = 4;  // shares of 3, 3, 2, 2 and 1, 1, 1, 0
  options.images = {0, 4};
  options.labels = {0, 4};
  const auto whole = load(set, options, 1);
  options.images = {2, 2};
  options.labels = {1, 2};
  const auto part = load(set, options, 1);
  REQUIRE(part.size() == 2);
  CHECK(part[0].ids == std::vector(whole[0].ids.begin() + 6, whole[0].ids.end()));
  CHECK(part[0].labels == std::vector(whole[0].labels.begin() + 3, whole[0].labels.begin() + 8));
  CHECK(part[0].x == std::vector(whole[0].x.begin() + 6 * 192, whole[0].x.end()));
  CHECK(part[0].image_start(3) == 2);
  CHECK(part[0].label_start(2) == 3);
  options.labels = {2, 0};
  const auto images_alone = load(set, options, 1);
  CHECK(images_alone[0].ids == part[0].ids);
  CHECK(images_alone[0].labels.empty());
  options.images = {0, 0};
  const auto none = load(set, options, 1);
  REQUIRE(none.size() == 2);
  CHECK(none[0].images == 0);
  CHECK(none[1].batch_images == 3);
}

TEST_CASE("loader: labels of passed over images go where another process says so") {
  auto set =
      std::make_shared<FailingSet>(std::set<std::int64_t>{2, 4, 9}, FailingSet::How::bad_image);
  LoaderOptions options = options_of(10);  // shares: 0..4, 5..9
  options.train = false;
  options.bad_images = BadImages::skip;
  options.replicas = 2;
  options.images = {0, 0};
  options.labels = {0, 2};  // reads no image, so knows of no bad one
  HostBatch batch = load(set, options).front();
  CHECK(batch.skipped.empty());
  CHECK(batch.labels.size() == 10);
  leave_out(batch, {2, 4, 9});
  CHECK(batch.shares == std::vector<std::int64_t>{3, 4});
  CHECK(batch.label_positions == std::vector<std::int64_t>{0, 1, 3, 5, 6, 7, 8});
  CHECK(batch.labels.size() == 7);
  CHECK(batch.label_start(1) == 3);
}

TEST_CASE("loader: a skipped image is missing in its replica's share") {
  auto set =
      std::make_shared<FailingSet>(std::set<std::int64_t>{2, 4, 9}, FailingSet::How::bad_image);
  LoaderOptions options = options_of(10);  // shares: 0..3, 4..6, 7..9
  options.train = false;
  options.bad_images = BadImages::skip;
  options.images = options.labels = {1, 2};
  options.replicas = 3;
  auto batches = load(set, options);
  CHECK(batches[0].shares == std::vector<std::int64_t>{4, 2, 2});
  CHECK(batches[0].ids == std::vector<std::int64_t>{5, 6, 7, 8});
  REQUIRE(batches[0].skipped.size() == 2);
  CHECK(batches[0].skipped[1].position == 9);
}

TEST_CASE("loader: 32 copies of one image are varied in 32 ways, the same for any threads") {
  TemporaryFolder folder;
  Bytes png = testing::make_png(testing::test_image(40, 30));
  for (int i = 10; i < 42; ++i) put_file(folder, "train/a/" + std::to_string(i) + ".png", png);
  auto set = open_image_folder(folder.path(), kDefaultMaxPixels).train;
  auto batches = load(set, options_of(32, 2));
  REQUIRE(batches.size() == 1);
  std::size_t width = batches[0].x.size() / 32;
  std::set<std::vector<float>> seen;
  for (std::size_t i = 0; i < 32; ++i) {
    auto begin = batches[0].x.begin() + static_cast<std::ptrdiff_t>(i * width);
    seen.emplace(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  CHECK(seen.size() == 32);
  check_equal(load(set, options_of(32, 5)), batches);
  LoaderOptions plain = options_of(32);
  plain.augment = false;
  auto same = load(set, plain);
  CHECK(std::equal(same[0].x.begin(), same[0].x.begin() + static_cast<std::ptrdiff_t>(width),
                   same[0].x.begin() + static_cast<std::ptrdiff_t>(width)));
}

TEST_CASE("loader: bad images stop by default, the first in order is named") {
  for (int threads : {0, 1, 4}) {
    auto set =
        std::make_shared<FailingSet>(std::set<std::int64_t>{9, 6}, FailingSet::How::bad_image);
    LoaderOptions options = options_of(4, threads);
    options.train = false;
    Loader loader(set, options);
    loader.start_epoch(0);
    CHECK(loader.next()->images == 4);
    for (int again = 0; again < 2; ++again) {
      expect_error(ErrorKind::data, {"image 6: broken"}, [&] { loader.next(); });
    }
    loader.start_epoch(1, 12);  // a new epoch is a new chance
    CHECK(loader.next()->ids.front() == 12);
  }
}

TEST_CASE("loader: skipped images leave their place empty") {
  TemporaryFolder folder;
  Bytes jpeg = testing::make_jpeg(testing::test_image(40, 30));
  std::size_t scan = 0;
  while (!(jpeg[scan] == 0xFF && jpeg[scan + 1] == 0xDA)) ++scan;
  Bytes wrong_checksum = testing::make_png(testing::test_image(40, 30));
  wrong_checksum[wrong_checksum.size() - 13] ^= 1;
  for (int i = 10; i < 30; ++i) put_png(folder, "train/a/" + std::to_string(i) + ".png", 8, i);
  auto cut = [&](std::size_t size) {
    return Bytes(jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(size));
  };
  put_file(folder, "train/a/13.png", cut(jpeg.size() * 6 / 10));
  put_file(folder, "train/a/17.png", cut(scan + 14));
  put_file(folder, "train/a/22.png", {});
  put_file(folder, "train/a/29.png", wrong_checksum);
  auto set = open_image_folder(folder.path(), kDefaultMaxPixels).train;
  LoaderOptions options = options_of(6);
  SECTION("stop") {
    Loader loader(set, options);
    loader.start_epoch(0);
    expect_error(ErrorKind::data, {folder.path(), ".png: "}, [&] {
      while (loader.next()) {
      }
    });
  }
  SECTION("skip, in one process and in four shares") {
    options.bad_images = BadImages::skip;
    std::set<std::string> names;
    for (int replicas : {1, 4}) {
      names.clear();
      std::int64_t images = 0;
      for (int replica = 0; replica < replicas; ++replica) {
        options.replicas = replicas;
        options.images = options.labels = {replica, 1};
        for (const HostBatch& batch : load(set, options)) {
          images += batch.images;
          CHECK(batch.shape[0] == batch.images);
          CHECK(batch.x.size() == static_cast<std::size_t>(batch.images) * 192);
          CHECK(batch.labels.size() == batch.ids.size());
          for (const SkippedImage& image : batch.skipped) names.insert(image.name);
        }
      }
      CHECK(images == 16);
      CHECK(names == std::set<std::string>{folder / "train/a/13.png", folder / "train/a/17.png",
                                           folder / "train/a/22.png", folder / "train/a/29.png"});
    }
  }
}

TEST_CASE("loader: the images left keep their values") {
  auto set =
      std::make_shared<FailingSet>(std::set<std::int64_t>{0, 2, 3}, FailingSet::How::bad_image);
  LoaderOptions options = options_of(5);
  options.train = false;
  options.bad_images = BadImages::skip;
  options.one_hot = 2;
  options.normalisation = Normalisation{{0, 0, 0}, {1, 1, 1}};
  Loader loader(set, options);
  loader.start_epoch(0);
  HostBatch batch = *loader.next();
  CHECK(batch.ids == std::vector<std::int64_t>{1, 4});
  CHECK(batch.labels == std::vector<std::int64_t>{1, 0});
  CHECK(batch.targets == std::vector<float>{0, 1, 1, 0});
  CHECK(batch.x[0] == 1 / 255.0f);
  CHECK(batch.x[192] == 4 / 255.0f);
  CHECK(batch.batch_images == 5);
  CHECK(describe_skipped(batch.skipped, 20) ==
        "skipped 3 of 20: image 0: broken, image 2: broken, image 3: broken");
  CHECK(describe_skipped({}, 20).empty());
}

TEST_CASE("loader: a batch of bad images is empty, not an end") {
  auto set = std::make_shared<FailingSet>(std::set<std::int64_t>{0, 1}, FailingSet::How::bad_image);
  LoaderOptions options = options_of(2);
  options.train = false;
  options.bad_images = BadImages::skip;
  auto batches = load(set, options);
  REQUIRE(batches.size() == 10);
  CHECK(batches[0].images == 0);
  CHECK(batches[0].skipped.size() == 2);
  CHECK(batches[1].images == 2);
}

TEST_CASE("loader: errors that are no bad images reach next() even when skipping") {
  for (auto how : {FailingSet::How::other_error, FailingSet::How::foreign}) {
    auto set = std::make_shared<FailingSet>(std::set<std::int64_t>{3}, how);
    LoaderOptions options = options_of(4);
    options.train = false;
    options.bad_images = BadImages::skip;
    Loader loader(set, options);
    loader.start_epoch(0);
    if (how == FailingSet::How::foreign) {
      CHECK_THROWS_AS(loader.next(), std::runtime_error);
    } else {
      expect_error(ErrorKind::resource, {"image 3: no room"}, [&] { loader.next(); });
    }
  }
}

TEST_CASE("loader: it can be left or started again at any moment") {
  auto set = synthetic_images({1, 0, 200}, 16, 4);
  for (int taken = 0; taken < 6; ++taken) {
    Loader loader(set, options_of(8, 3));
    if (taken > 0) loader.start_epoch(0);
    for (int i = 1; i < taken; ++i) loader.next();
    if (taken % 2 == 0) {
      loader.start_epoch(1);
      CHECK(loader.next()->ids.front() == epoch_order(5, 1, 200).front());
    }
  }
  Loader never_started(set, options_of(8, 3));
}

TEST_CASE("loader: memory of used batches is taken again") {
  auto set = synthetic_images({1, 0, 40}, 8, 4);
  auto expected = load(set, options_of(6));
  Loader loader(set, options_of(6));
  loader.start_epoch(0);
  for (const HostBatch& wanted : expected) {
    HostBatch batch = *loader.next();
    CHECK(batch.x == wanted.x);
    std::fill(batch.x.begin(), batch.x.end(), -1.0f);
    loader.recycle(std::move(batch));
  }
  CHECK_FALSE(loader.next());
}

TEST_CASE("loader: no more batches are made than prefetch allows") {
  struct Counting : FailingSet {
    Counting() : FailingSet({}, How::bad_image) {}
    Image read(std::int64_t i) const override {
      ++reads;
      return FailingSet::read(i);
    }
    mutable std::atomic<int> reads = 0;
  };
  auto set = std::make_shared<Counting>();
  LoaderOptions options = options_of(2, 3);
  options.prefetch = 3;
  Loader loader(set, options);
  loader.start_epoch(0);
  while (set->reads < 6) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(set->reads == 6);
  loader.next();
  while (set->reads < 8) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(set->reads == 8);
}

TEST_CASE("loader: rows and their targets") {
  auto set = synthetic_rows({1, 0, 7}, 10, 5);
  auto batches = load(set, options_of(4));
  REQUIRE(batches.size() == 2);
  CHECK(batches[0].shape == Shape{4, 10});
  CHECK(batches[0].target_width == 5);
  CHECK(batches[0].targets.size() == 20);
  CHECK(batches[0].labels.empty());
  float x[10];
  float target[5];
  set->read_row(batches[0].ids[2], x, target);
  CHECK(std::equal(x, x + 10, batches[0].x.begin() + 20));
  CHECK(std::equal(target, target + 5, batches[0].targets.begin() + 10));
}

TEST_CASE("loader: time in next() is counted") {
  auto set = synthetic_images({1, 0, 10}, 8, 4);
  Loader loader(set, options_of(5, 0));
  CHECK(loader.wait_seconds() == 0);
  loader.start_epoch(0);
  loader.next();
  double once = loader.wait_seconds();
  CHECK(once > 0);
  loader.next();
  CHECK(loader.wait_seconds() > once);
  CHECK(loader.batches() == 2);
}

TEST_CASE("loader: impossible settings") {
  auto set = synthetic_images({1, 0, 10}, 8, 4);
  auto fails = [&](const LoaderOptions& options, std::string_view part) {
    expect_error(ErrorKind::usage, {part}, [&] { Loader(set, options); });
  };
  fails(options_of(0), "--batch 0");
  fails(options_of(4, -1), "--loader-threads -1");
  LoaderOptions options = options_of(4);
  options.prefetch = 0;
  fails(options, "prefetch of 0");
  options = options_of(4);
  options.images = {1, 1};
  fails(options, "1 replica(s) from 1 on, but there are 1");
  options = options_of(4);
  options.normalisation = Normalisation{{0, 0, 0}, {1, 0, 1}};
  fails(options, "deviation 0");
  Loader loader(set, options_of(4));
  expect_error(ErrorKind::usage, {"before start_epoch"}, [&] { loader.next(); });
  expect_error(ErrorKind::usage, {"from image 11", "0 to 10"}, [&] { loader.start_epoch(0, 11); });
  options = options_of(4, 0);
  options.one_hot = 2;
  Loader narrow(set, options);
  narrow.start_epoch(0);
  expect_error(ErrorKind::usage, {"label", "0..1"}, [&] {
    while (narrow.next()) {
    }
  });
}
