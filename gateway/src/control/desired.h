// The desired state that this gateway holds: objects by key, brought up to date by StreamUpdates,
// each as a whole when its last message has come, and proven by the sender's digest.
//
// Values only, one thread at a time. desired_file.h keeps it over restarts, diff.h compares.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "control/objects.h"
#include "control/wire.h"

namespace sluice::control {

struct Snapshot {
  uint64_t version = 0;  // 0: none
  std::string digest;
  // Of all copies of a snapshot the same, and never null: there may be thousands of them.
  std::shared_ptr<const Objects> objects = std::make_shared<const Objects>();

  // nullptr: there is none, or it is of another kind.
  const wire::DesiredSettings* settings() const;
  const wire::DesiredVolume* volume(const std::string& uid) const;
  const wire::DesiredHost* host(const std::string& uid) const;
};

// As gateway_stream.proto defines it (StreamUpdate.digest).
std::string digest_of(const Objects& objects);

class Desired {
 public:
  enum class Taken : uint8_t { kMore, kComplete };

  // The error says why the update can't be used: what is held stays as it is and has no version to
  // continue from any more, so that the next hello asks for a snapshot.
  Result<Taken> take(wire::StreamUpdate update);
  // A stream has ended: of an update that was under way the rest won't come.
  void forget_unfinished();

  const Snapshot& held() const { return held_; }
  // For the hello: 0 where deltas are of no use.
  uint64_t version() const { return distrusted_ ? 0 : held_.version; }
  std::string digest() const { return distrusted_ ? std::string() : held_.digest; }

 private:
  Result<void> stage(wire::StreamUpdate& update);
  Result<Taken> give_up(const std::string& why);

  Snapshot held_;
  bool distrusted_ = false;
  // Of the update under way: the whole, not the difference.
  bool staging_ = false;
  uint64_t staged_version_ = 0;
  size_t staged_bytes_ = 0;
  Objects staged_;
};

}  // namespace sluice::control
