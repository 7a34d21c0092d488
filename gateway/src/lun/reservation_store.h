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
// (DESIGN R8): a power cut leaves the old record or the new one. Without APTPL the record says
// that nothing survives. A record that can't be trusted is an error, never an empty state: hosts
// rely on reservations to keep each other from the data.
//
// Threads: commit() from anywhere; one worker writes, in order. The directory belongs to one
// process (a lock on it says so).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "lun/reservations.h"

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
  explicit FileReservationStore(std::unique_ptr<RecordFiles> files);
  // Writes what is queued, then stops.
  ~FileReservationStore() override;

  // `done` runs on the worker, or here when the queue is full or the UUID isn't one.
  void commit(const std::string& unit_uuid, const ReservationState& state,
              CommitDone done) override;
  Result<ReservationState> load(const std::string& unit_uuid) override;

 private:
  struct Job {
    std::string unit_uuid;
    ReservationState state;
    CommitDone done;
  };
  void work();
  void write(const Job& job);

  const std::unique_ptr<RecordFiles> files_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::thread worker_;  // last: it uses the others
};

}  // namespace sluice::lun
