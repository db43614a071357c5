#include "engine/parallel/reducer.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <set>

#include "engine/autograd/grad_mode.h"
#include "engine/parallel/gather.h"
#include "engine/parallel/layout_fingerprint.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// Windows after which ranks whose layouts still differ keep to row-major ones: at first some may
// have had no images, and so no reason to move a weight into its layout.
constexpr int kLayoutTries = 3;

// A tensor that goes by two names is taken once.
NamedTensors those_with_gradients(const NamedTensors& all) {
  NamedTensors result;
  std::set<const Tensor::Impl*> known;
  for (const auto& entry : all) {
    const Tensor& tensor = entry.second;
    if (tensor.requires_grad() && known.insert(tensor.impl().get()).second) result.push_back(entry);
  }
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Where a rank's list of parameters (`what` each is) differs from rank 0's.
void check_same(const std::vector<std::string>& first, const std::vector<std::string>& other,
                std::size_t rank, const char* what) {
  for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
    CONVOY_CHECK(first[i] == other[i],
                 "reducer: {} {} is {} on rank 0 and {} on rank {}: all ranks need the same model",
                 what, i, first[i], other[i], rank);
  }
  CONVOY_CHECK(first.size() == other.size(),
               "reducer: rank 0 has {} {}s, rank {} has {}: all ranks need the same model",
               first.size(), what, rank, other.size());
}

// Tensors of one type and device that travel as one: small ones, so that many take one message.
using Parcel = std::vector<Tensor>;

std::vector<Parcel> parcels_of(const std::vector<Tensor>& tensors) {
  constexpr std::size_t kSmall = 16 << 10;
  std::vector<Parcel> parcels;
  std::map<std::pair<Device, DType>, std::size_t> open;  // parcels of small ones
  for (const Tensor& tensor : tensors) {
    std::size_t number = parcels.size();
    if (bytes_of(tensor.shape(), tensor.dtype()) <= kSmall) {
      number = open.try_emplace({tensor.device(), tensor.dtype()}, number).first->second;
    }
    if (number == parcels.size()) parcels.emplace_back();
    parcels[number].push_back(tensor);
  }
  return parcels;
}

// Views of `flat`, one for each tensor of the parcel.
Parcel places_in(const Tensor& flat, const Parcel& parcel) {
  Parcel places;
  std::int64_t begin = 0;
  for (const Tensor& tensor : parcel) {
    const std::int64_t end = begin + tensor.numel();
    places.push_back(flat.slice(begin, end).reshape(tensor.shape().extents()));
    begin = end;
  }
  return places;
}

std::int64_t count_of(const Parcel& parcel) {
  std::int64_t count = 0;
  for (const Tensor& tensor : parcel) count += tensor.numel();
  return count;
}

double seconds(ReduceLane::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Reducer::Reducer(const NamedTensors& parameters, Communicator& communicator,
                 const ReducerOptions& options)
    : options_(options),
      control_(communicator.split(0, communicator.rank())),
      parameters_(those_with_gradients(parameters)),
      layouts_(parameters_.size(), kPlain) {
  CONVOY_CHECK(!parameters_.empty(), "reducer: no parameter requires a gradient");
  make_lanes(options);
  add_hooks();
}

Reducer::~Reducer() {
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    parameters_[i].second.remove_gradient_hook(hooks_[i]);
  }
  // While an exception passes, whoever catches it tells the group why. But a sum in work waits for
  // ranks that may wait for this one, so it has to end first.
  const bool in_sum =
      std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->busy(); });
  if (armed_ && (std::uncaught_exceptions() == 0 || in_sum)) {
    control_->abort(Error(ErrorKind::communication, "reducer: given up in the middle of a backward",
                          CONVOY_PLACE, control_->rank()));
  }
}

void Reducer::make_lanes(const ReducerOptions& options) {
  std::map<std::pair<Device, DType>, std::size_t> numbers;
  std::vector<NamedTensors> members;
  std::string text;
  for (const auto& entry : parameters_) {
    const Tensor& parameter = entry.second;
    const std::size_t lane =
        numbers.try_emplace({parameter.device(), parameter.dtype()}, members.size()).first->second;
    if (lane == members.size()) members.emplace_back();
    places_.push_back({lane, members[lane].size()});
    members[lane].push_back(entry);
    text += fmt::format("{} {} {} (device {} of its rank)\n", entry.first, name(parameter.dtype()),
                        to_string(parameter.shape()), lane);
  }
  check_agreement("parameter", text);
  Communicator& gradients = options.gradients ? *options.gradients : *control_;
  for (NamedTensors& of_lane : members) {
    lanes_.push_back(std::make_unique<ReduceLane>(
        std::move(of_lane), gradients.split(0, gradients.rank()), options.buckets));
  }
}

void Reducer::check_alike(const char* what, const NamedTensors& tensors) {
  std::string text;
  for (const auto& [its_name, tensor] : tensors) {
    text += fmt::format("{} {} {}\n", its_name, name(tensor.dtype()), to_string(tensor.shape()));
  }
  check_agreement(what, text);
}

void Reducer::check_agreement(const char* what, const std::string& mine) {
  Stream& stream = stream_of(parameters_.front().second.device());
  const std::vector<std::string> texts = gather_texts(*control_, stream, mine);
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    check_same(lines_of(texts[0]), lines_of(texts[rank]), rank, what);
  }
}

// Not the stream of ops: workers that share a device share that one, and would wait for themselves.
Stream& Reducer::stream_of(const Device& device) {
  std::unique_ptr<Stream>& stream = streams_[device];
  if (!stream) stream = context(device).make_stream();
  return *stream;
}

void Reducer::broadcast(const std::vector<Tensor>& tensors) {
  const NoGradScope no_grad;
  for (const Parcel& parcel : parcels_of(tensors)) {
    if (parcel.size() == 1) {
      broadcast_one(parcel[0]);
      continue;
    }
    const Tensor flat = Tensor::empty({count_of(parcel)}, parcel[0].options());
    Parcel places = places_in(flat, parcel);
    for (std::size_t i = 0; rank() == 0 && i < parcel.size(); ++i) places[i].copy_(parcel[i]);
    broadcast_one(flat);
    for (std::size_t i = 0; rank() != 0 && i < parcel.size(); ++i) {
      parcel[i].detach().copy_(places[i]);
    }
  }
}

// It is the host that waits: a wait in the stream of ops would hold up workers that share it, whose
// values this one waits for.
void Reducer::broadcast_one(const Tensor& tensor) {
  Tensor target = tensor.detach();
  const Tensor plain = target.with_layout(kPlain);
  plain.before_write();
  Stream& stream = stream_of(tensor.device());
  stream.wait(current_stream(tensor.device()).record());
  control_->broadcast(plain.buffer(), plain.numel(), 0, stream);
  stream.synchronize();
  if (plain.layout() != target.layout()) target.copy_(plain);
}

void Reducer::add_hooks() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.push_back(parameters_[i].second.on_gradient([this, i](Tensor&) { on_gradient(i); }));
  }
}

void Reducer::arm() {
  begin();
  factor_ = 1;
}

void Reducer::arm(const GradientShare& share) {
  begin();
  // Sent at once and read when the first gradient is there: by then the others have sent theirs.
  ReduceLane& lane = *lanes_.front();
  const StreamScope scope(lane.stream());
  weight_ = share.weight;
  factor_.reset();
  parts_ = Tensor::from(std::vector<double>{share.part}, {1}, lane.stream().device());
  lane.communicator().all_reduce(parts_.buffer(), parts_.buffer(), 1, Reduction::sum,
                                 lane.stream());
  lane.mark_sent();
}

void Reducer::begin() {
  CONVOY_CHECK(!armed_, "reducer: armed twice: finish() the first window");
  armed_ = true;
  had_.assign(parameters_.size(), false);
  for (const auto& lane : lanes_) lane->begin();
}

double Reducer::factor() {
  if (!factor_) {
    const StreamScope scope(lanes_.front()->stream());
    const double parts = parts_.item();
    factor_ = parts > 0 ? weight_ / parts : 1.0 / control_->size();
  }
  return *factor_;
}

void Reducer::on_gradient(std::size_t parameter) {
  if (!armed_) return;
  const NoGradScope no_grad;
  const auto& [name, tensor] = parameters_[parameter];
  const auto [lane, member] = places_[parameter];
  CONVOY_CHECK(
      !lanes_[lane]->has_collected(member),
      "reducer: the gradient of {} became final twice: arm() goes before the last backward "
      "of a window",
      name);
  const Device& device = lanes_[lane]->stream().device();
  CONVOY_CHECK(tensor.device() == device, "reducer: {} has moved from {} to {}", name,
               to_string(device), to_string(tensor.device()));
  had_[parameter] = true;
  lanes_[lane]->collect(member, factor());
}

void Reducer::collect_rest() {
  // What earlier batches of the window have left counts; the buckets want their own order.
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    const auto [lane, member] = places_[i];
    if (lanes_[lane]->has_collected(member)) continue;
    if (parameters_[i].second.grad().defined()) {
      on_gradient(i);
    } else {
      lanes_[lane]->collect_zeros(member, absent_ && !options_.allow_unused);
    }
  }
}

void Reducer::finish() {
  CONVOY_CHECK(armed_, "reducer: finish() without arm()");
  const NoGradScope no_grad;
  collect_rest();
  const std::vector<double> ranks = wait();
  armed_ = false;
  add_times();
  check_present(ranks);
  absent_ = false;
  if (!layouts_settled_) agree_on_layouts();
}

std::vector<double> Reducer::wait() {
  std::vector<std::vector<double>> of_lanes;
  for (const auto& lane : lanes_) of_lanes.push_back(lane->wait());
  std::vector<double> result;
  for (const auto& [lane, member] : places_) result.push_back(of_lanes[lane][member]);
  return result;
}

void Reducer::add_times() {
  double exposed = 0;
  for (const auto& lane : lanes_) {
    times_.all_reduce += seconds(lane->times().all_reduce);
    exposed = std::max(exposed, seconds(lane->times().reduced - lane->times().computed));
  }
  times_.exposed += exposed;
}

// `ranks`: how many of them had a gradient, of each parameter; the same numbers on all ranks.
void Reducer::check_present(const std::vector<double>& ranks) {
  const bool missing = std::any_of(ranks.begin(), ranks.end(),
                                   [&](double count) { return count != control_->size(); });
  const bool fails = missing && !options_.allow_unused;
  std::vector<std::vector<bool>> unused;
  for (const auto& lane : lanes_) unused.emplace_back(lane->parameters().size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    unused[places_[i].lane][places_[i].member] =
        fails ? !had_[i] : options_.allow_unused && ranks[i] == 0;
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i]->end(unused[i]);
  if (fails) fail_missing();
}

void Reducer::fail_missing() {
  std::vector<std::int64_t> mine(had_.begin(), had_.end());
  if (std::exchange(absent_, false)) mine.assign(mine.size(), 1);
  const auto all = gather_integers(*control_, stream_of(parameters_.front().second.device()), mine);
  std::string text;
  int named = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::string ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (!all[rank][i]) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
    }
    if (ranks.empty() || ++named > 5) continue;
    text += fmt::format("{}{} on rank {}", named > 1 ? "; " : "", parameters_[i].first, ranks);
  }
  if (named > 5) text += fmt::format("; and {} more", named - 5);
  CONVOY_FAIL(usage,
              "reducer: backward gave no gradient of {}: every rank must use every parameter, or "
              "unused ones must be allowed",
              text);
}

void Reducer::agree_on_layouts() {
  std::map<std::pair<LayoutId, std::vector<std::int64_t>>, std::int64_t> known;
  std::vector<std::int64_t> mine;
  for (const auto& [name, parameter] : parameters_) {
    const auto key = std::pair(parameter.layout(), parameter.shape().extents());
    const auto [entry, is_new] = known.try_emplace(key);
    if (is_new) entry->second = layout_fingerprint(parameter.detach());
    mine.push_back(entry->second);
  }
  const auto all = gather_integers(*control_, stream_of(parameters_.front().second.device()), mine);
  std::vector<bool> agreed;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    agreed.push_back(std::all_of(all.begin(), all.end(),
                                 [&](const auto& rank) { return rank[i] == all.front()[i]; }));
  }
  const bool all_agreed = std::all_of(agreed.begin(), agreed.end(), [](bool one) { return one; });
  layouts_settled_ = all_agreed || ++layout_tries_ == kLayoutTries;
  set_layouts(agreed);
}

void Reducer::set_layouts(const std::vector<bool>& agreed) {
  std::vector<std::vector<LayoutId>> layouts;
  for (const auto& lane : lanes_) layouts.emplace_back(lane->parameters().size());
  for (std::size_t i = 0; i < agreed.size(); ++i) {
    layouts_[i] = agreed[i] ? parameters_[i].second.layout() : kPlain;
    layouts[places_[i].lane][places_[i].member] = layouts_[i];
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i]->set_layouts(layouts[i]);
}

}  // namespace convoy
