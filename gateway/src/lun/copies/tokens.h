// ROD tokens of a target (SPC-5 §5.18.6): what POPULATE TOKEN hands out and WRITE USING TOKEN
// takes back, perhaps from another host and for another LUN.
//
// A token is worth what its blocks were when it was made: it is revoked when one of them is
// written (change_watch.h), and forgotten when nobody used it for its inactivity time.
// Threads: all of it from any reactor.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "scsi/outcome.h"
#include "scsi/rod_token.h"
#include "scsi/unmap_list.h"

namespace sluice::lun {

class Unit;

// What a token stands for. Outlives the token while a copy uses it.
class RodSource {
 public:
  RodSource(const std::shared_ptr<Unit>& unit, std::vector<scsi::BlockExtent> ranges,
            Nanos inactivity, Nanos born);

  std::shared_ptr<Unit> unit() const { return unit_.lock(); }  // null: gone
  const std::vector<scsi::BlockExtent>& ranges() const { return ranges_; }
  uint64_t blocks() const { return blocks_; }
  bool overlaps(uint64_t first, uint64_t last) const;  // blocks, inclusive

  bool revoked() const { return revoked_.load(std::memory_order_acquire); }
  void revoke() { revoked_.store(true, std::memory_order_release); }
  bool expired(Nanos now) const { return now >= deadline_.load(std::memory_order_relaxed); }
  // It is used now: its inactivity time starts anew, within its life.
  void touch(Nanos now);

 private:
  const std::weak_ptr<Unit> unit_;
  const std::vector<scsi::BlockExtent> ranges_;
  uint64_t blocks_ = 0;
  const Nanos inactivity_;
  const Nanos end_of_life_;
  std::atomic<Nanos> deadline_;
  std::atomic<bool> revoked_{false};
};

class TokenStore {
 public:
  // A new token for `source`; bounded by limits::kMaxRodTokens, the least recently used one goes.
  // false: no randomness to be had.
  bool issue(const std::shared_ptr<RodSource>& source, Nanos now, scsi::RodTokenBytes* token);
  // What a token stands for, or why not: 05/23/04 unknown, /05 corrupt, /06 revoked, /07 expired.
  scsi::Outcome<std::shared_ptr<RodSource>> use(const scsi::RodToken& token, Nanos now);
  void remove(const scsi::RodToken& token);
  size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<RodSource> source;
    scsi::RodToken token;
    uint64_t used = 0;  // tick of the last use
  };
  void make_room(Nanos now);

  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;  // by COPY MANAGER ROD TOKEN IDENTIFIER
  uint64_t next_id_ = 1;
  uint64_t tick_ = 0;
};

}  // namespace sluice::lun
