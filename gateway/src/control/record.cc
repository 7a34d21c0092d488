#include "control/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "base/limits.h"
#include "lun/reservation_store.h"

namespace sluice::control {
namespace {

constexpr std::string_view kMagic = "sluice-volume 1\n";
constexpr const char* kNote = ".holder";
constexpr size_t kSealBytes = 16;  // "crc32c 01234567\n"

// Takes "name value\n" lines off the front; any mistake makes it bad for good.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::string text(std::string_view name) {
    const size_t end = rest_.find('\n');
    if (bad_ || end == std::string_view::npos || !rest_.starts_with(name) ||
        rest_.size() <= name.size() || rest_[name.size()] != ' ') {
      bad_ = true;
      return {};
    }
    std::string value(rest_.substr(name.size() + 1, end - name.size() - 1));
    rest_.remove_prefix(end + 1);
    return value;
  }

  uint64_t number(std::string_view name) { return number_of(text(name)); }

  uint64_t number_of(std::string_view digits) {
    uint64_t value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || stop != digits.data() + digits.size()) bad_ = true;
    return value;
  }

  void fail() { bad_ = true; }
  bool bad() const { return bad_; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool bad_ = false;
};

void read_process(Lines& lines, Holder* holder) {
  std::istringstream words(lines.text("process"));
  std::string extra;
  if (!(words >> holder->pid >> holder->start_time >> holder->pid_namespace) || words >> extra) {
    lines.fail();
  }
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

const std::string& boot_id() {
  static const std::string id = first_line("/proc/sys/kernel/random/boot_id");
  return id;
}

// Whether all that a note can say is all that is new.
bool only_held_anew(const Record& record, const Record& next) {
  Record held = record;
  held.holder = next.holder;
  held.order = next.order;
  return held == next && next.order >= record.order && !next.holder.boot_id.empty();
}

}  // namespace

Holder this_process(const std::string& incarnation, const std::string& socket) {
  Holder holder;
  holder.pid = ::getpid();
  holder.incarnation = incarnation;
  holder.socket = socket;
  holder.boot_id = boot_id();
  const std::string stat = first_line("/proc/self/stat");
  // The name in parentheses may hold anything; the start time is the 20th field after it.
  std::istringstream fields(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
  std::string skipped;
  for (int i = 0; i < 19; ++i) fields >> skipped;
  fields >> holder.start_time;
  struct stat status{};
  if (::stat("/proc/self/ns/pid", &status) == 0) holder.pid_namespace = status.st_ino;
  return holder;
}

std::string format_record(const Record& record) {
  const std::string reservations = lun::format_reservations(record.volume, record.reservations);
  const Holder& holder = record.holder;
  const std::string text = fmt::format(
      "{}volume {}\nepoch {}\norder {}\ngeneration {}\nprocess {} {} {}\nboot {}\nincarnation {}\n"
      "socket {}\nreservations {}\n{}",
      kMagic, record.volume, record.epoch, record.order, record.generation, holder.pid,
      holder.start_time, holder.pid_namespace, holder.boot_id, holder.incarnation, holder.socket,
      reservations.size(), reservations);
  return text + "crc32c " + checksum_text(text) + '\n';
}

Result<Record> parse_record(std::string_view text, const std::string& volume,
                            const std::string& shown) {
  const auto broken = [&shown](const std::string& what) {
    return Error{shown + ' ' + what +
                 ", and with it what hosts have reserved is not known; restore it from a backup, "
                 "or remove it once no host uses the volume"};
  };
  if (!text.starts_with(kMagic)) return broken("is no record of this release");
  if (text.size() < kMagic.size() + kSealBytes) return broken("is cut short");
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  if (text.substr(body.size()) != "crc32c " + checksum_text(body) + '\n') {
    return broken("is damaged (checksum)");
  }
  Lines lines(body.substr(kMagic.size()));
  Record record;
  record.volume = lines.text("volume");
  record.epoch = lines.number("epoch");
  record.order = lines.number("order");
  record.generation = lines.number("generation");
  read_process(lines, &record.holder);
  record.holder.boot_id = lines.text("boot");
  record.holder.incarnation = lines.text("incarnation");
  record.holder.socket = lines.text("socket");
  const uint64_t size = lines.number("reservations");
  if (lines.bad() || size != lines.rest().size()) return broken("is damaged");
  if (record.volume != volume) return broken("is of volume " + record.volume);
  Result<lun::ReservationState> state = lun::parse_reservations(lines.rest(), volume, shown);
  if (!state) return broken("is damaged (" + state.error() + ")");
  record.reservations = std::move(state).value();
  return record;
}

RecordFile::RecordFile(int directory, std::string volume, std::string shown)
    : directory_(directory), volume_(std::move(volume)), shown_(std::move(shown)) {}

Result<std::optional<Record>> RecordFile::read() const {
  const Result<std::optional<std::string>> text =
      read_small_file(directory_, volume_ + ".volume", limits::kMaxVolumeRecord, shown_);
  if (!text) return Error{text.error()};
  if (!text.value()) return std::optional<Record>();
  Result<Record> record = parse_record(*text.value(), volume_, shown_);
  if (!record) return Error{record.error()};
  read_note(&record.value());
  return std::optional(std::move(record).value());
}

// An order only ever grows (R1), and who writes the record noted itself under the same lock before:
// a note of an older order is one that the record has overtaken.
void RecordFile::read_note(Record* record) const {
  const Result<std::optional<std::string>> text =
      read_small_file(directory_, volume_ + kNote, limits::kMaxVolumeRecord, shown_);
  if (!text || !text.value()) return;
  Result<Record> note = parse_record(*text.value(), volume_, shown_);
  if (!note || note.value().epoch != record->epoch || note.value().order < record->order ||
      note.value().holder.boot_id != boot_id()) {
    return;
  }
  record->holder = std::move(note.value().holder);
  record->order = note.value().order;
}

Result<void> RecordFile::note(const Record& record) const {
  Record short_one = record;
  short_one.reservations = {};
  return replace_file(directory_, volume_ + kNote, format_record(short_one), shown_, nullptr,
                      Outlasts::kProcess);
}

// Writers of the record exclude each other, whatever they hold besides.
Result<FileDescriptor> RecordFile::guard() const {
  FileDescriptor file(::openat(directory_, (volume_ + ".guard").c_str(),
                               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return Error{"can't guard " + shown_ + ": " + reason_of(errno)};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return Error{"can't guard " + shown_ + ": " + reason_of(errno)};
    }
    if (std::chrono::steady_clock::now() >= end) {
      return Error{"can't write " + shown_ +
                   ": a writer of it has hung for more than a second; check the disk"};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return file;
}

Result<void> RecordFile::write(const Record& record) const {
  const Result<void> written =
      replace_file(directory_, volume_ + ".volume", format_record(record), shown_);
  // It says nothing any more that the record doesn't.
  if (written) ::unlinkat(directory_, (volume_ + kNote).c_str(), 0);
  return written;
}

Result<void> RecordFile::claim(const Record& record, Outlasts outlasts) const {
  const Result<FileDescriptor> guarded = guard();
  if (!guarded) return Error{guarded.error()};
  const Result<std::optional<Record>> present = read();
  if (!present) return Error{present.error()};
  if (present.value() && present.value()->epoch > record.epoch) {
    return Error{shown_ + " is of epoch " + std::to_string(present.value()->epoch) +
                 ", newer than the order's " + std::to_string(record.epoch)};
  }
  if (outlasts == Outlasts::kProcess && present.value() && only_held_anew(*present.value(), record))
    return note(record);
  return write(record);
}

Result<void> RecordFile::update(const Record& record) const {
  const Result<FileDescriptor> guarded = guard();
  if (!guarded) return Error{guarded.error()};
  const Result<std::optional<Record>> present = read();
  if (!present) return Error{present.error()};
  if (!present.value() || present.value()->holder != record.holder ||
      present.value()->epoch != record.epoch) {
    return Error{shown_ + " is another gateway's by now"};
  }
  return write(record);
}

}  // namespace sluice::control
