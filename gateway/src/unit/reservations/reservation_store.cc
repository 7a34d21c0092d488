#include "unit/reservations/reservation_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_descriptor.h"
#include "base/limits.h"

namespace sluice::lun {
namespace {

// Far above 4096 registrations with the longest names.
constexpr size_t kMaxRecordBytes = size_t{64} << 20;

Error failed(const std::string& what, const std::string& path) {
  return Error{"cannot " + what + ' ' + path + ": " + std::strerror(errno)};
}

class DirectoryFiles : public RecordFiles {
 public:
  DirectoryFiles(std::string directory, int fd) : directory_(std::move(directory)), fd_(fd) {}

  std::string path(const std::string& name) const override { return directory_ + '/' + name; }

  Result<void> write_synced(const std::string& name, std::string_view text) override {
    const FileDescriptor file(
        ::openat(fd_.get(), name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) return failed("create", path(name));
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(file.get(), text.data() + at, text.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("write", path(name));
      at += static_cast<size_t>(n);
    }
    if (::fsync(file.get()) != 0) return failed("sync", path(name));
    return {};
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (::renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str()) != 0) {
      return failed("rename to", path(to));
    }
    return {};
  }
  Result<void> sync_directory() override {
    if (::fsync(fd_.get()) != 0) return failed("sync", directory_);
    return {};
  }
  Result<std::string> read(const std::string& name, bool* exists) override {
    const FileDescriptor file(::openat(fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC));
    *exists = file.valid();
    if (!file.valid() && errno == ENOENT) return std::string();
    if (!file.valid()) return failed("open", path(name));
    std::string text;
    char block[16384];
    for (;;) {
      const ssize_t n = ::read(file.get(), block, sizeof block);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("read", path(name));
      if (n == 0) return text;
      text.append(block, static_cast<size_t>(n));
      if (text.size() > kMaxRecordBytes) {
        errno = EFBIG;
        return failed("read", path(name));
      }
    }
  }

 private:
  const std::string directory_;
  const FileDescriptor fd_;
};

// The UUID becomes a file name.
bool is_uuid(std::string_view uuid) {
  return !uuid.empty() && uuid.size() <= 64 &&
         uuid.find_first_not_of("0123456789abcdefABCDEF-") == std::string_view::npos;
}

}  // namespace

Result<std::shared_ptr<FileReservationStore>> FileReservationStore::open(
    const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed("create the state directory", directory);
  }
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed("open the state directory", directory);
  auto files = std::make_unique<DirectoryFiles>(directory, fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return Error{"the state directory " + directory +
                 " is in use by another gateway; give each gateway a directory of its own"};
  }
  return std::make_shared<FileReservationStore>(std::move(files));
}

FileReservationStore::FileReservationStore(std::unique_ptr<RecordFiles> files,
                                           std::function<Clock::time_point()> now, Nanos bound)
    : files_(std::move(files)),
      now_(std::move(now)),
      bound_(bound),
      executor_({.threads = 1, .at_end = Executor::AtEnd::kRunQueued}) {}

FileReservationStore::~FileReservationStore() { stop(); }

void FileReservationStore::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  executor_.stop();
}

// --- answers; the caller holds mutex_

void FileReservationStore::answer_commit(Job& job, CommitOutcome outcome,
                                         const std::string& error) {
  if (std::exchange(job.answered, true)) return;
  job.reply.reactors->post(job.reply.reactor, [done = std::move(job.committed), outcome, error] {
    done(outcome, error);
  });
}

void FileReservationStore::answer_read(Job& job, Result<ReservationState> state) {
  if (std::exchange(job.answered, true)) return;
  job.reply.reactors->post(
      job.reply.reactor, [done = std::move(job.found), state = std::move(state)] { done(state); });
}

// --- calls

void FileReservationStore::commit(const std::string& unit_uuid, const ReservationState& state,
                                  StoreReply reply, CommitDone done) {
  auto job = std::make_shared<Job>();
  job->unit_uuid = unit_uuid;
  job->is_commit = true;
  job->state = state;
  job->reply = reply;
  job->committed = std::move(done);
  enqueue(std::move(job));
}

void FileReservationStore::read(const std::string& unit_uuid, StoreReply reply, ReadDone done) {
  auto job = std::make_shared<Job>();
  job->unit_uuid = unit_uuid;
  job->reply = reply;
  job->found = std::move(done);
  enqueue(std::move(job));
}

void FileReservationStore::enqueue(JobPtr job) {
  std::string refusal;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;  // no reactor is left to answer to
    if (!is_uuid(job->unit_uuid)) {
      refusal = '"' + job->unit_uuid + "\" is not a UUID";
    } else if (jobs_.size() >= limits::kMaxReservationCommits) {
      refusal = "too many changes of reservations wait for the disk";
    }
    if (!refusal.empty()) {
      if (job->is_commit) return answer_commit(*job, CommitOutcome::kNotCommitted, refusal);
      return answer_read(*job, Error{refusal});
    }
    job->deadline = now_() + std::chrono::nanoseconds(bound_);
    jobs_.push_back(std::move(job));
    if (!watched_) watch_later_locked(bound_);
  }
  executor_.post({"records", "work"}, [this] { work(); });
}

// --- the strand that does the work

// One job, unless watch() has removed it.
void FileReservationStore::work() {
  std::unique_lock lock(mutex_);
  if (jobs_.empty()) return;
  current_ = std::move(jobs_.front());
  jobs_.pop_front();
  lock.unlock();
  run(*current_);
  lock.lock();
  current_ = nullptr;
}

void FileReservationStore::run(Job& job) {
  if (job.is_commit) {
    std::string error;
    const CommitOutcome outcome = write(job.unit_uuid, job.state, &error);
    const std::lock_guard lock(mutex_);
    return answer_commit(job, outcome, error);
  }
  Result<ReservationState> state = settle(job.unit_uuid);
  const std::lock_guard lock(mutex_);
  answer_read(job, std::move(state));
}

CommitOutcome FileReservationStore::write(const std::string& unit_uuid,
                                          const ReservationState& state, std::string* error) {
  const std::string name = unit_uuid + ".reservations";
  const std::string beside = name + ".new";
  Result<void> step = files_->write_synced(beside, format_reservations(unit_uuid, state));
  if (!step) {
    *error = step.error();
    return CommitOutcome::kNotCommitted;
  }
  // From here on a power failure may leave either record.
  step = files_->rename(beside, name);
  if (step) step = files_->sync_directory();
  if (step) return CommitOutcome::kCommitted;
  *error = step.error();
  return CommitOutcome::kUnknown;
}

Result<ReservationState> FileReservationStore::find(const std::string& unit_uuid) {
  const std::string name = unit_uuid + ".reservations";
  bool exists = false;
  const Result<std::string> text = files_->read(name, &exists);
  if (!text) return Error{text.error()};
  if (!exists) return ReservationState{};
  return parse_reservations(text.value(), unit_uuid, files_->path(name));
}

Result<ReservationState> FileReservationStore::settle(const std::string& unit_uuid) {
  Result<ReservationState> state = find(unit_uuid);
  if (!state) return state;
  std::string error;
  if (write(unit_uuid, *state, &error) == CommitOutcome::kCommitted) return state;
  return Error{error};
}

// --- the time limit

void FileReservationStore::watch_later_locked(Nanos delay) {
  watched_ = true;
  executor_.post({"deadlines"}, [this] { watch(); }, delay);
}

// A disk may hang for longer than the callers wait.
void FileReservationStore::watch() {
  const std::lock_guard lock(mutex_);
  watched_ = false;
  for (;;) {
    const bool running = current_ && !current_->answered;
    if (!running && jobs_.empty()) return;
    // All jobs have the same time limit, so the oldest is due first.
    const JobPtr due = running ? current_ : jobs_.front();
    if (const Clock::time_point now = now_(); now < due->deadline) {
      return watch_later_locked(std::chrono::nanoseconds(due->deadline - now).count());
    }
    if (!running) jobs_.pop_front();
    constexpr const char* kSlow = "the disk took too long";
    if (due->is_commit) {
      // A job that was not begun is removed from the queue, so it is certainly not committed.
      answer_commit(*due, running ? CommitOutcome::kUnknown : CommitOutcome::kNotCommitted, kSlow);
    } else {
      answer_read(*due, Error{kSlow});
    }
  }
}

Result<ReservationState> FileReservationStore::load(const std::string& unit_uuid) {
  if (!is_uuid(unit_uuid)) return Error{"\"" + unit_uuid + "\" is not a UUID"};
  Result<ReservationState> state = find(unit_uuid);
  if (!state) return state;
  return after_power_loss(std::move(state).value());
}

}  // namespace sluice::lun
