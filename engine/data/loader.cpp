#include "engine/data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/data/order.h"
#include "engine/data/transform.h"
#include "engine/io/text.h"

namespace convoy {
namespace {

/// One batch in the making. Samples write their own places; the rest is guarded by the loader's
/// mutex.
struct Slot {
  Share images, labels;  // positions in the epoch's order
  Share all;             // of both
  HostBatch batch;
  std::vector<std::string> reasons;  // of bad images, by place; empty where all is well
  std::once_flag allocated;
  std::int64_t claimed = 0;
  std::int64_t left = 0;
  std::exception_ptr error;  // of the first place that met one
  std::int64_t error_place = 0;
};

/// One pass over the data.
struct Epoch {
  std::int64_t number = 0;
  std::int64_t first = 0;
  std::int64_t batches = 0;
  std::vector<std::int64_t> order;
  std::int64_t taken = 0;                   // batches that next() has given out
  std::deque<std::shared_ptr<Slot>> slots;  // batches taken, taken + 1, ...
  std::exception_ptr error;
};

/// One sample to load. It keeps its epoch alive when another has been started meanwhile.
struct Work {
  std::shared_ptr<Epoch> epoch;
  std::shared_ptr<Slot> slot;
  std::int64_t place = 0;
};

void check_options(const LoaderOptions& o) {
  CONVOY_CHECK(o.batch >= 1, "--batch {}: at least 1 expected", o.batch);
  CONVOY_CHECK(o.threads >= 0 && o.threads <= 1024, "--loader-threads {}: 0 to 1024 expected",
               o.threads);
  CONVOY_CHECK(o.prefetch >= 1, "loader: prefetch of {} batches, at least 1 expected", o.prefetch);
  for (const ReplicaRange& range : {o.images, o.labels}) {
    CONVOY_CHECK(range.first >= 0 && range.count >= 0 && range.end() <= o.replicas,
                 "loader: {} replica(s) from {} on, but there are {}", range.count, range.first,
                 o.replicas);
  }
  CONVOY_DCHECK(o.images.count == 0 || o.labels.count == 0 ||
                    (o.images.first <= o.labels.end() && o.labels.first <= o.images.end()),
                "loader: images of replicas {} to {}, labels of {} to {}", o.images.first,
                o.images.end(), o.labels.first, o.labels.end());
}

/// Where the samples of some replicas lie in a batch of `count` that starts at `begin`.
Share share_of_range(const ReplicaRange& range, std::int64_t begin, std::int64_t count,
                     int replicas) {
  if (range.count == 0) return {begin, 0};
  const Share first = share_of(count, replicas, range.first);
  const Share last = share_of(count, replicas, range.end() - 1);
  return {begin + first.begin, last.begin + last.count - first.begin};
}

Share hull_of(const Share& a, const Share& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const std::int64_t begin = std::min(a.begin, b.begin);
  return {begin, std::max(a.begin + a.count, b.begin + b.count) - begin};
}

bool contains(const Share& share, std::int64_t position) {
  return share.begin <= position && position < share.begin + share.count;
}

TransformOptions transform_options(const Dataset& dataset, const LoaderOptions& o) {
  AugmentRule augment = o.train && o.augment ? dataset.augment_rule() : AugmentRule::none;
  return {o.image_size, o.normalisation.value_or(dataset.normalisation()), dataset.resize_rule(),
          augment};
}

/// Moves the samples that are `good` together, `width` numbers each.
template <class T>
void keep_good(std::vector<T>& values, std::int64_t width, const std::vector<bool>& good) {
  auto out = values.begin();
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto from = values.begin() + static_cast<std::int64_t>(i) * width;
    if (good[i]) out = std::copy(from, from + width, out);
  }
  values.resize(static_cast<std::size_t>(out - values.begin()));
}

std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& shares,
                                    const ReplicaRange& range) {
  std::vector<std::int64_t> starts;
  std::int64_t start = 0;
  for (int replica = range.first; replica < range.end(); ++replica) {
    starts.push_back(start);
    start += shares.at(static_cast<std::size_t>(replica));
  }
  return starts;
}

}  // namespace

class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
      : dataset_(std::move(dataset)),
        options_(options),
        transform_(transform_options(*dataset_, options)) {
    check_options(options);
    start_threads();
  }
  ~Impl() { stop_threads(); }

  void start_epoch(std::int64_t number, std::int64_t first_image) {
    std::int64_t size = dataset_->size();
    CONVOY_CHECK(first_image >= 0 && first_image <= size,
                 "loader: epoch {} from image {}, 0 to {} expected", number, first_image, size);
    auto epoch = std::make_shared<Epoch>();
    epoch->number = number;
    epoch->first = first_image;
    epoch->batches = (size - first_image + options_.batch - 1) / options_.batch;
    epoch->order = options_.train ? epoch_order(options_.seed, number, size) : plain_order(size);
    {
      std::lock_guard lock(mutex_);
      epoch_ = std::move(epoch);
      open_slots();
    }
    work_there_.notify_all();
  }

  std::optional<HostBatch> next() {
    CONVOY_CHECK(epoch_ != nullptr, "loader: next() before start_epoch()");
    if (epoch_->error) std::rethrow_exception(epoch_->error);
    if (epoch_->taken == epoch_->batches) return {};
    auto begin = std::chrono::steady_clock::now();
    if (options_.threads == 0) work_until_ready();
    std::shared_ptr<Slot> slot = take_slot();
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (slot->error) std::rethrow_exception(slot->error);
    return finished(*slot);
  }

  void recycle(HostBatch batch) {
    std::lock_guard lock(mutex_);
    if (std::ssize(spare_) < options_.prefetch) spare_.push_back(std::move(batch.x));
  }

  std::int64_t batches() const { return epoch_ ? epoch_->batches : 0; }
  double wait_seconds() const { return waited_; }
  const Dataset& dataset() const { return *dataset_; }

 private:
  std::int64_t width() const {
    return dataset_->kind() == SampleKind::rows ? dataset_->features() : transform_.count();
  }

  std::int64_t target_width() const {
    return dataset_->kind() == SampleKind::rows ? dataset_->targets() : options_.one_hot;
  }

  void start_threads() {
    try {
      for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { run_thread(); });
    } catch (const std::system_error& error) {
      stop_threads();
      CONVOY_FAIL(resource, "loader: thread {} of {} cannot be started: {}", threads_.size() + 1,
                  options_.threads, error.what());
    }
  }

  void stop_threads() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_there_.notify_all();
    for (std::jthread& thread : threads_) thread.join();
  }

  // Slots and claims: all under mutex_.

  std::shared_ptr<Slot> make_slot(std::int64_t number) const {
    auto slot = std::make_shared<Slot>();
    std::int64_t begin = epoch_->first + number * options_.batch;
    std::int64_t count = std::min(options_.batch, std::ssize(epoch_->order) - begin);
    slot->images = share_of_range(options_.images, begin, count, options_.replicas);
    slot->labels = share_of_range(options_.labels, begin, count, options_.replicas);
    slot->all = hull_of(slot->images, slot->labels);
    slot->left = slot->all.count;
    HostBatch& batch = slot->batch;
    batch.shares = shares_of(count, options_.replicas);
    batch.image_replicas = options_.images;
    batch.label_replicas = options_.labels;
    batch.first = begin;
    batch.batch_images = count;
    return slot;
  }

  void open_slots() {
    Epoch& epoch = *epoch_;
    std::int64_t end = std::min(epoch.batches, epoch.taken + options_.prefetch);
    while (epoch.taken + std::ssize(epoch.slots) < end) {
      epoch.slots.push_back(make_slot(epoch.taken + std::ssize(epoch.slots)));
    }
  }

  std::optional<Work> claim() {
    if (epoch_ == nullptr || epoch_->error) return {};
    for (const std::shared_ptr<Slot>& slot : epoch_->slots) {
      if (slot->claimed < slot->all.count) return Work{epoch_, slot, slot->claimed++};
    }
    return {};
  }

  std::shared_ptr<Slot> take_slot() {
    std::unique_lock lock(mutex_);
    std::shared_ptr<Slot> slot = epoch_->slots.front();
    batch_ready_.wait(lock, [&] { return slot->left == 0; });
    epoch_->slots.pop_front();
    ++epoch_->taken;
    epoch_->error = slot->error;
    if (!slot->error) open_slots();
    lock.unlock();
    work_there_.notify_all();
    return slot;
  }

  // Loading: without the mutex.

  void run_thread() {
    for (;;) {
      std::optional<Work> work;
      {
        std::unique_lock lock(mutex_);
        work_there_.wait(lock, [&] { return stopping_ || (work = claim()).has_value(); });
        if (stopping_) return;
      }
      do_work(*work);
    }
  }

  void work_until_ready() {
    while (epoch_->slots.front()->left > 0) do_work(*claim());
  }

  void do_work(const Work& work) {
    try {
      load(work);
    } catch (const Error& error) {
      bool bad_image = error.kind() == ErrorKind::data && options_.bad_images == BadImages::skip;
      if (bad_image) {
        work.slot->reasons[work.place] = error.text();
      } else {
        keep_error(work, std::current_exception());
      }
    } catch (const std::bad_alloc&) {
      keep_error(work, std::make_exception_ptr(
                           Error(ErrorKind::resource, "loader: no memory left", CONVOY_PLACE)));
    } catch (...) {
      keep_error(work, std::current_exception());
    }
    std::lock_guard lock(mutex_);
    if (--work.slot->left == 0) batch_ready_.notify_all();
  }

  /// The error of the first place wins, whichever thread is first in time.
  void keep_error(const Work& work, std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    Slot& slot = *work.slot;
    if (slot.error && slot.error_place < work.place) return;
    slot.error = std::move(error);
    slot.error_place = work.place;
  }

  void allocate(Slot& slot) {
    {
      std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        slot.batch.x = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    const auto images = static_cast<std::size_t>(slot.images.count);
    const auto labels = static_cast<std::size_t>(slot.labels.count);
    slot.batch.x.resize(images * static_cast<std::size_t>(width()));
    slot.batch.ids.resize(images);
    slot.batch.targets.assign(labels * static_cast<std::size_t>(target_width()), 0.0f);
    slot.batch.labels.resize(dataset_->kind() == SampleKind::rows ? 0 : labels);
    slot.reasons.resize(static_cast<std::size_t>(slot.all.count));
  }

  void load(const Work& work) {
    Slot& slot = *work.slot;
    std::call_once(slot.allocated, [&] { allocate(slot); });
    const std::int64_t position = slot.all.begin + work.place;
    const std::int64_t id = work.epoch->order[position];
    if (contains(slot.images, position)) slot.batch.ids[position - slot.images.begin] = id;
    if (dataset_->kind() == SampleKind::rows) {
      load_row(slot, position, id);
      return;
    }
    if (contains(slot.labels, position)) load_label(slot, position - slot.labels.begin, id);
    if (contains(slot.images, position)) {
      load_image(*work.epoch, id, slot.batch.x.data() + (position - slot.images.begin) * width());
    }
  }

  /// Both halves of a row are read together; one of them may be nobody's here.
  void load_row(Slot& slot, std::int64_t position, std::int64_t id) const {
    std::vector<float> unused;
    const auto place = [&](const Share& share, std::vector<float>& values, std::int64_t wide) {
      if (contains(share, position)) return values.data() + (position - share.begin) * wide;
      unused.resize(static_cast<std::size_t>(wide));
      return unused.data();
    };
    float* x = place(slot.images, slot.batch.x, width());
    float* target = place(slot.labels, slot.batch.targets, target_width());
    dataset_->read_row(id, x, target);
  }

  void load_label(Slot& slot, std::int64_t place, std::int64_t id) const {
    std::int64_t label = dataset_->label(id);
    slot.batch.labels[place] = label;
    if (options_.one_hot == 0) return;
    CONVOY_CHECK(label < options_.one_hot, "{}: label {}, 0..{} expected",
                 printable(dataset_->label_place(id)), label, options_.one_hot - 1);
    slot.batch.targets[place * target_width() + label] = 1.0f;
  }

  void load_image(const Epoch& epoch, std::int64_t id, float* x) const {
    if (options_.train) {
      transform_.train(*dataset_, {options_.seed, epoch.number, id}, x);
    } else {
      transform_.eval(dataset_->read(id), x);
    }
  }

  Shape shape_of(std::int64_t images) const {
    if (dataset_->kind() == SampleKind::rows) return {images, dataset_->features()};
    return {images, kChannels, options_.image_size, options_.image_size};
  }

  /// The places of bad images move together; what remains knows only of this process's bad ones.
  void leave_out_bad(Slot& slot) const {
    HostBatch& batch = slot.batch;
    std::vector<bool> good(static_cast<std::size_t>(slot.images.count), true);
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < slot.images.count; ++i) {
      const std::int64_t position = slot.images.begin + i;
      const std::string& reason = slot.reasons[position - slot.all.begin];
      if (reason.empty()) continue;
      good[static_cast<std::size_t>(i)] = false;
      positions.push_back(position);
      const std::int64_t id = batch.ids[i];
      batch.skipped.push_back({id, position, dataset_->image_path_or_name(id), reason});
    }
    if (positions.empty()) return;
    keep_good(batch.x, width(), good);
    keep_good(batch.ids, 1, good);
    leave_out(batch, positions);
  }

  HostBatch finished(Slot& slot) const {
    HostBatch& batch = slot.batch;
    batch.target_width = target_width();
    for (std::int64_t i = 0; i < slot.labels.count; ++i) {
      batch.label_positions.push_back(slot.labels.begin + i);
    }
    batch.set_starts();
    leave_out_bad(slot);
    batch.images = std::ssize(batch.ids);
    batch.shape = shape_of(batch.images);
    return std::move(batch);
  }

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  Transform transform_;
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable work_there_;
  std::condition_variable batch_ready_;
  std::shared_ptr<Epoch> epoch_;  // the pointer is changed by the owner's thread alone
  std::vector<std::vector<float>> spare_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(dataset), options)) {}
Loader::~Loader() = default;

void Loader::start_epoch(std::int64_t epoch, std::int64_t first_image) {
  impl_->start_epoch(epoch, first_image);
}
std::optional<HostBatch> Loader::next() {
  return impl_->next();
}
void Loader::recycle(HostBatch batch) {
  impl_->recycle(std::move(batch));
}
std::int64_t Loader::batches() const {
  return impl_->batches();
}
double Loader::wait_seconds() const {
  return impl_->wait_seconds();
}
const Dataset& Loader::dataset() const {
  return impl_->dataset();
}

void HostBatch::set_starts() {
  image_starts = starts_of(shares, image_replicas);
  label_starts = starts_of(shares, label_replicas);
}

void leave_out(HostBatch& batch, const std::vector<std::int64_t>& positions) {
  const int replicas = static_cast<int>(batch.shares.size());
  batch.shares = shares_of(batch.batch_images, replicas);
  const std::set<std::int64_t> out(positions.begin(), positions.end());
  for (int replica = 0; replica < replicas; ++replica) {
    const Share share = share_of(batch.batch_images, replicas, replica);
    batch.shares[replica] -= std::count_if(out.begin(), out.end(), [&](std::int64_t position) {
      return contains(share, position - batch.first);
    });
  }
  std::vector<bool> good;
  for (std::int64_t position : batch.label_positions) good.push_back(!out.contains(position));
  if (!batch.labels.empty()) keep_good(batch.labels, 1, good);
  keep_good(batch.targets, batch.target_width, good);
  keep_good(batch.label_positions, 1, good);
  batch.set_starts();
}

std::string describe_skipped(const std::vector<SkippedImage>& skipped, std::int64_t images) {
  if (skipped.empty()) return {};
  std::string text = fmt::format("skipped {} of {}:", skipped.size(), images);
  const char* separator = " ";
  for (const SkippedImage& image : skipped) {
    text += separator + image.reason;  // starts with the path
    separator = ", ";
  }
  return text;
}

}  // namespace convoy
