// Common code of the tests of this room: a reload, on units that hold no data.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/apply.h"
#include "config/summary.h"

namespace sluice::config {

class NoReactors final : public Reactors {
 public:
  unsigned count() const override { return 2; }
  unsigned current() const override { return 2; }
  void post(unsigned, std::function<void()>) override {}
};

struct Reloaded {
  Changes changes;
  desired::Outcome outcome;
  std::vector<std::string> lines() const { return describe(changes, outcome); }
  bool nothing() const { return lines().empty(); }
};

// Error: why the reload is refused. Every backend opens.
inline Result<Reloaded> reload(const Config& now, const Config& next) {
  NoReactors reactors;
  lun::Exports exports;
  Volumes volumes({.reactors = reactors.count(), .store = nullptr, .open = [](backend::Spec spec) {
                     spec.kind = "null";
                     if (spec.size == 0) spec.size = 1 << 20;
                     return backend::open(spec);
                   }});
  desired::Exporter exporter({.exports = exports,
                              .reactors = reactors,
                              .units = volumes,
                              .review = [](const std::string&) {}});
  const Result<desired::Outcome> started = apply(from_scratch(now).value(), volumes, exporter);
  EXPECT_TRUE(started.ok()) << started.error();
  Result<Changes> changes = diff(now, next);
  if (!changes) return Error{changes.error()};
  Result<desired::Outcome> outcome = apply(changes.value(), volumes, exporter);
  if (!outcome) return Error{outcome.error()};
  return Reloaded{std::move(changes).value(), std::move(outcome).value()};
}

}  // namespace sluice::config
