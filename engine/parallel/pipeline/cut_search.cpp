#include "engine/parallel/pipeline/cut_search.h"

#include <algorithm>
#include <utility>

namespace convoy {
namespace {

// A way to cut the nodes before some place into some number of stages.
struct Way {
  double sum = 0;       // work and transfers of one micro-batch
  double forward = 0;   // the slowest stage's F
  double backward = 0;  // the slowest stage's I + W
  double total = 0;     // the slowest stage's F + I + W
  int first = 0;        // where its last stage begins
  int before = 0;       // its way of cutting what lies before that: an index
};

using Ways = std::vector<Way>;

// `way` and one more stage, nodes `first` to `end` - 1.
Way extended(const CutSearch& search, const Way& way, int stage, int first, int end) {
  const PhaseTimes times = search.times(stage, first, end);
  const double transfer = search.transfer_s(first);  // the next stage counts the one at `end`
  Way longer;
  longer.sum = way.sum + times.total() + 2 * transfer;
  longer.forward = std::max({way.forward, times.forward, transfer});
  longer.backward = std::max({way.backward, times.backward(), transfer});
  longer.total = std::max({way.total, times.total(), transfer});
  longer.first = first;
  return longer;
}

double seconds(const CutSearch& search, const Way& way) {
  if (!search.phases_apart) return search.micro_batches * way.total;
  return way.sum + (search.micro_batches - 1) * (way.forward + way.backward);
}

// Keeps the `count` best by the slowest stage, in order.
void keep_fastest(Ways& ways, const Way& way, int count) {
  const auto by_total = [](const Way& a, const Way& b) { return a.total < b.total; };
  if (static_cast<int>(ways.size()) == count && !by_total(way, ways.back())) return;
  ways.insert(std::upper_bound(ways.begin(), ways.end(), way, by_total), way);
  if (static_cast<int>(ways.size()) > count) ways.pop_back();
}

bool beats(const Way& a, const Way& b) {
  return a.sum <= b.sum && a.forward <= b.forward && a.backward <= b.backward;
}

// Keeps what no other way beats in every respect.
void keep_undominated(Ways& ways, const Way& way) {
  if (std::any_of(ways.begin(), ways.end(), [&](const Way& other) { return beats(other, way); })) {
    return;
  }
  std::erase_if(ways, [&](const Way& other) { return beats(way, other); });
  ways.push_back(way);
}

class Program {
 public:
  explicit Program(const CutSearch& search)
      : search_(search), ways_(search.stages + 1, std::vector<Ways>(search.nodes + 1)) {
    ways_[0][0] = {Way{}};
    for (int stage = 0; stage < search.stages; ++stage) {
      for (int end = stage + 1; end <= search.nodes; ++end) fill(stage, end);
    }
  }

  std::vector<Cuts> best() const {
    const Ways& all = ways_[search_.stages][search_.nodes];
    std::vector<Cuts> cuts;
    for (const Way& way : all) cuts.push_back({ends_of(way), seconds(search_, way)});
    std::stable_sort(cuts.begin(), cuts.end(),
                     [](const Cuts& a, const Cuts& b) { return a.seconds < b.seconds; });
    if (static_cast<int>(cuts.size()) > search_.keep) cuts.resize(search_.keep);
    return cuts;
  }

 private:
  // All ways to end `stage` before node `end`; a longer stage is slower, so the short ones go
  // first.
  void fill(int stage, int end) {
    Ways& ways = ways_[stage + 1][end];
    for (int first = end - 1; first >= stage; --first) {
      const Ways& before = ways_[stage][first];
      if (before.empty() || hopeless(ways, stage, first, end)) continue;
      if (!search_.fits(stage, first, end)) continue;
      for (std::size_t i = 0; i < before.size(); ++i) {
        Way way = extended(search_, before[i], stage, first, end);
        way.before = static_cast<int>(i);
        if (search_.phases_apart) {
          keep_undominated(ways, way);
        } else {
          keep_fastest(ways, way, search_.keep);
        }
      }
    }
  }

  // Whether the last stage alone is slower than all that are kept: spares asking for memory.
  bool hopeless(const Ways& ways, int stage, int first, int end) const {
    if (search_.phases_apart || static_cast<int>(ways.size()) < search_.keep) return false;
    return search_.times(stage, first, end).total() >= ways.back().total;
  }

  std::vector<int> ends_of(Way way) const {
    std::vector<int> ends(search_.stages);
    int end = search_.nodes;
    for (int stage = search_.stages - 1; stage >= 0; --stage) {
      ends[stage] = end;
      end = way.first;
      way = ways_[stage][end][way.before];
    }
    return ends;
  }

  const CutSearch& search_;
  std::vector<std::vector<Ways>> ways_;  // by number of stages and of nodes
};

}  // namespace

std::vector<Cuts> search_cuts(const CutSearch& search) {
  return Program(search).best();
}

double cut_seconds(const CutSearch& search, const std::vector<int>& ends) {
  Way way;
  int first = 0;
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    way = extended(search, way, static_cast<int>(stage), first, ends[stage]);
    first = ends[stage];
  }
  return seconds(search, way);
}

}  // namespace convoy
