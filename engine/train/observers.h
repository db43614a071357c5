// The observers of a run as one: each hears every event.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/observer.h"

namespace convoy {

class Observers {
 public:
  /// They outlive this.
  explicit Observers(std::vector<Observer*> observers) : observers_(std::move(observers)) {}

  void tell(const std::function<void(Observer&)>& event) const {
    for (Observer* observer : observers_) event(*observer);
  }
  void note(const std::vector<std::string>& lines) const {
    for (const std::string& line : lines) {
      tell([&](Observer& observer) { observer.on_note(line); });
    }
  }
  void warn(const std::string& text) const {
    tell([&](Observer& observer) { observer.on_warning(text); });
  }
  const std::vector<Observer*>& all() const { return observers_; }

 private:
  std::vector<Observer*> observers_;
};

}  // namespace convoy
