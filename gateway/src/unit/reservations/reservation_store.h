// Keeps reservations in a directory: one file per unit, named after its UUID.
//
//   sluice-reservations 1
//   unit 5f0c...                         32 hex digits
//   generation 7
//   aptpl 1
//   type 5
//   holder <isid> <tpgt> <port> <name>   absent when nobody holds
//   registration <key> <isid> <tpgt> <port> <name>
//   all-ports <key> <isid> <tpgt> <port> <except,...|-> <name>
//   crc32c 8a9136aa                      over everything above
//
// A record is written beside the old one, synced, renamed over it, and the directory is synced
// (DESIGN R8): a power cut leaves the old record or the new one. What fails before the rename is
// provably not committed; from then on it is unknown, even if the rename itself failed: the error
// may be of the disk, not of the name. read() settles that by writing once more what the name shows
// now; a sync that merely succeeds after one that failed proves nothing, because the kernel reports
// a lost write once. Without APTPL the record is for read() alone: load() finds that nothing
// survived. A record that can't be trusted is an error, never an empty state: hosts rely on
// reservations to keep each other from the data.
//
// Threads: one worker does everything, in order; a second thread answers for it when the disk takes
// longer than the bound. The directory belongs to one process (a lock on it says so).
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "unit/reservations/reservation_contract.h"

namespace sluice::lun {

std::string format_reservations(const std::string& unit_uuid, const ReservationState& state);
// `name` is how errors call the record.
Result<ReservationState> parse_reservations(std::string_view text, const std::string& unit_uuid,
                                            const std::string& name);

// The steps of a write, apart so that tests can cut the power between any two.
class RecordFiles {
 public:
  virtual ~RecordFiles() = default;
  // Creates or truncates `name`, fills it and syncs it.
  virtual Result<void> write_synced(const std::string& name, std::string_view text) = 0;
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> sync_directory() = 0;
  // *exists says whether there is such a record; its text is then returned.
  virtual Result<std::string> read(const std::string& name, bool* exists) = 0;
  virtual std::string path(const std::string& name) const = 0;
};

class FileReservationStore : public ReservationStore {
 public:
  // Creates the directory if need be. Error: it can't be used, or another process uses it.
  static Result<std::shared_ptr<FileReservationStore>> open(const std::string& directory);
  using Clock = std::chrono::steady_clock;
  explicit FileReservationStore(std::unique_ptr<RecordFiles> files,
                                std::function<Clock::time_point()> now = Clock::now);
  ~FileReservationStore() override;

  void commit(const std::string& unit_uuid, const ReservationState& state, StoreReply reply,
              CommitDone done) override;
  void read(const std::string& unit_uuid, StoreReply reply, ReadDone done) override;
  Result<ReservationState> load(const std::string& unit_uuid) override;
  // Writes what is queued, then stops.
  void stop() override;

 private:
  struct Job {
    std::string unit_uuid;
    bool is_commit = false;  // else a read
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
  void watch();
  void run(Job& job);
  void answer_commit(Job& job, CommitOutcome outcome, const std::string& error);
  void answer_read(Job& job, Result<ReservationState> state);
  CommitOutcome write(const std::string& unit_uuid, const ReservationState& state,
                      std::string* error);
  Result<ReservationState> find(const std::string& unit_uuid);
  Result<ReservationState> settle(const std::string& unit_uuid);

  const std::unique_ptr<RecordFiles> files_;
  const std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  std::condition_variable wake_;        // the worker
  std::condition_variable wake_watch_;  // the other
  std::deque<JobPtr> jobs_;
  JobPtr current_;
  bool stopping_ = false;
  bool stopped_ = false;
  std::thread worker_;  // last: they use the others
  std::thread watcher_;
};

}  // namespace sluice::lun
