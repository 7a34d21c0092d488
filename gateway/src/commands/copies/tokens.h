// ROD tokens of a target (SPC-5 §5.18.6): what POPULATE TOKEN hands out and WRITE USING TOKEN
// takes back, perhaps from another host and for another LUN.
//
// A token is worth what its blocks were when it was made: it is revoked when one of them is
// written (change_watch.h), and forgotten when nobody used it for its inactivity time.
// Threads: all of it from any reactor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/bytes.h"
#include "base/clock.h"
#include "scsi/outcome.h"
#include "scsi/rod_token.h"
#include "unit/rod_source.h"

namespace sluice::lun {

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
