// The ROD tokens of a target (SPC-5 §5.18.6). POPULATE TOKEN creates one; WRITE USING TOKEN uses
// it, possibly from another host and for another LUN.
//
// A token represents the data of its blocks at its creation. It is revoked when one of them is
// written (change_watch.h), and deleted after its inactivity time. Threads: any reactor.
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
  // Creates a token for `source`; beyond limits::kMaxRodTokens it replaces the least recently used
  // one. False: no random bytes available.
  bool issue(const std::shared_ptr<RodSource>& source, Nanos now, scsi::RodTokenBytes* token);
  // The source of a token, or sense data: 05/23/04 unknown, /05 corrupt, /06 revoked, /07 expired.
  scsi::Outcome<std::shared_ptr<RodSource>> use(const scsi::RodToken& token, Nanos now);
  void remove(const scsi::RodToken& token);
  size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<RodSource> source;
    scsi::RodToken token;
    uint64_t used = 0;  // sequence number of the last use
  };
  void make_room(Nanos now);

  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;  // by COPY MANAGER ROD TOKEN IDENTIFIER
  uint64_t next_id_ = 1;
  uint64_t tick_ = 0;
};

}  // namespace sluice::lun
