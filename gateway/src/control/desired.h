// The desired state that this gateway holds. StreamUpdates change it. An update takes effect when
// its last message has arrived and its digest matches the sender's.
//
// One thread at a time. desired_file.h stores it across restarts, diff.h compares two states.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "control/objects.h"
#include "control/wire.h"

namespace sluice::control {

struct Snapshot {
  uint64_t version = 0;  // 0: no state
  std::string digest;
  // Shared by all copies of a snapshot, because there may be thousands of objects; never null.
  std::shared_ptr<const Objects> objects = std::make_shared<const Objects>();

  // Each returns nullptr if there is no such object.
  const wire::DesiredSettings* settings() const;
  const wire::DesiredVolume* volume(const std::string& uid) const;
  const wire::DesiredHost* host(const std::string& uid) const;
};

// The SHA-256 digest that gateway_stream.proto defines (StreamUpdate.digest).
std::string digest_of(const Objects& objects);

class Desired {
 public:
  enum class Taken : uint8_t { kMore, kComplete };

  // Adds one message of an update. Error: why the update can't be used. The held state stays, but
  // version() becomes 0, so that the next hello requests a snapshot.
  Result<Taken> take(wire::StreamUpdate update);
  // The stream has ended: drops an update of which only a part arrived.
  void forget_unfinished();

  const Snapshot& held() const { return held_; }
  // The version for the hello; 0 requests a snapshot instead of changes.
  uint64_t version() const { return distrusted_ ? 0 : held_.version; }
  std::string digest() const { return distrusted_ ? std::string() : held_.digest; }

 private:
  Result<void> stage(wire::StreamUpdate& update);
  Result<Taken> give_up(const std::string& why);

  Snapshot held_;
  bool distrusted_ = false;
  // The update in progress: the complete resulting state, not the difference.
  bool staging_ = false;
  uint64_t staged_version_ = 0;
  size_t staged_bytes_ = 0;
  Objects staged_;
};

}  // namespace sluice::control
