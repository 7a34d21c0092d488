// Keeps reservations in a directory: one file per unit, named after its UUID.
//
//   sluice-reservations 1
//   unit 5f0c...                         32 hex digits
//   generation 7
//   aptpl 1
//   type 5
//   holder <isid> <tpgt> <port> <name>   absent without a holder
//   registration <key> <isid> <tpgt> <port> <name>
//   all-ports <key> <isid> <tpgt> <port> <except,...|-> <name>
//   crc32c 8a9136aa                      over everything above
//
// A record is written to a temporary file, synced and renamed over the old one, and the directory
// is synced (DESIGN R8). A power failure leaves the old or the new record. A failure before the
// rename is kNotCommitted. From the rename on it is kUnknown, even if the rename itself failed,
// because the error may concern the disk and not the name.
//
// read() resolves that by writing the visible record again. A sync that succeeds after a failed one
// proves nothing, because the kernel reports a lost write once. Without APTPL the record serves
// only read(), and load() returns an empty state. An untrustworthy record is an error, never an
// empty state, because hosts rely on reservations to exclude each other.
//
// Threads: an executor of its own. One strand does all work, in order. Another group answers calls
// if the disk takes longer than the time limit. A lock on the directory ensures that only one
// process uses it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/executor.h"
#include "base/limits.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::lun {

std::string format_reservations(const std::string& unit_uuid, const ReservationState& state);
// `name` is the record in errors.
Result<ReservationState> parse_reservations(std::string_view text, const std::string& unit_uuid,
                                            const std::string& name);

// The steps of a write, separated so that tests can simulate a power failure between any two.
class RecordFiles {
 public:
  virtual ~RecordFiles() = default;
  // Creates or truncates `name`, fills it and syncs it.
  virtual Result<void> write_synced(const std::string& name, std::string_view text) = 0;
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> sync_directory() = 0;
  // *exists: whether there is such a record; if so, its text is returned.
  virtual Result<std::string> read(const std::string& name, bool* exists) = 0;
  virtual std::string path(const std::string& name) const = 0;
};

class FileReservationStore : public ReservationStore {
 public:
  // Creates the directory if necessary. Error: unusable, or another process uses it.
  static Result<std::shared_ptr<FileReservationStore>> open(const std::string& directory);
  using Clock = std::chrono::steady_clock;
  // Answers each call after `bound` at the latest; `now` tells the time.
  explicit FileReservationStore(std::unique_ptr<RecordFiles> files,
                                std::function<Clock::time_point()> now = Clock::now,
                                Nanos bound = limits::kReservationStoreBound);
  ~FileReservationStore() override;

  void commit(const std::string& unit_uuid, const ReservationState& state, StoreReply reply,
              CommitDone done) override;
  void read(const std::string& unit_uuid, StoreReply reply, ReadDone done) override;
  Result<ReservationState> load(const std::string& unit_uuid) override;
  // Writes queued records, then stops.
  void stop() override;

 private:
  struct Job {
    std::string unit_uuid;
    bool is_commit = false;  // false: a read
    ReservationState state;  // to commit
    StoreReply reply;
    CommitDone committed;
    ReadDone found;
    Clock::time_point deadline;
    bool answered = false;
  };
  using JobPtr = std::shared_ptr<Job>;

  void enqueue(JobPtr job);
  void work();
  // Answers calls that are overdue.
  void watch();
  void watch_later_locked(Nanos delay);
  void run(Job& job);
  void answer_commit(Job& job, CommitOutcome outcome, const std::string& error);
  void answer_read(Job& job, Result<ReservationState> state);
  CommitOutcome write(const std::string& unit_uuid, const ReservationState& state,
                      std::string* error);
  Result<ReservationState> find(const std::string& unit_uuid);
  Result<ReservationState> settle(const std::string& unit_uuid);

  const std::unique_ptr<RecordFiles> files_;
  const std::function<Clock::time_point()> now_;
  const Nanos bound_;
  std::mutex mutex_;
  std::deque<JobPtr> jobs_;
  JobPtr current_;
  bool watched_ = false;  // watch() is posted
  bool stopping_ = false;
  Executor executor_;  // last, because its tasks use the other members
};

}  // namespace sluice::lun
