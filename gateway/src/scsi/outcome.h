// What a parser found, or the CHECK CONDITION that refuses it.
#pragma once

#include <utility>
#include <variant>

#include "scsi/sense.h"

namespace sluice::scsi {

template <class T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Outcome(const Sense& sense) : state_(sense) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return *std::get_if<0>(&state_); }
  const T& value() const { return *std::get_if<0>(&state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Sense& sense() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Sense> state_;
};

}  // namespace sluice::scsi
