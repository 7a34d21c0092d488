#include "control/local/claim_slots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string_view>
#include <tuple>

#include "control/local/record_files.h"

namespace sluice::control {
namespace {

constexpr size_t kSlots = std::tuple_size_v<decltype(ClaimSlots::Found::records)>;
// a page; its checksum detects an incomplete write after a power failure
constexpr size_t kSlotBytes = 4096;
constexpr size_t kAllBytes = kSlots * kSlotBytes;

// Reads up to the end of the buffer or of the file; negative: see errno.
ssize_t read_all(int fd, std::span<char> buffer) {
  size_t have = 0;
  while (have < buffer.size()) {
    const ssize_t n =
        ::pread(fd, buffer.data() + have, buffer.size() - have, static_cast<off_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return n;
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(have);
}

}  // namespace

ClaimSlots::ClaimSlots(int directory, std::string volume, std::string shown)
    : directory_(directory),
      volume_(std::move(volume)),
      name_(volume_ + kClaimsFile),
      shown_(std::move(shown)) {}

// Uses a small buffer, because the slots are read several times for each of hundreds of volumes.
Result<std::optional<ClaimSlots::Found>> ClaimSlots::find(For purpose) const {
  const int access = purpose == For::kWriting ? O_RDWR : O_RDONLY;
  Found found;
  found.file = FileDescriptor(::openat(directory_, name_.c_str(), access | O_CLOEXEC | O_NOFOLLOW));
  if (!found.file.valid() && errno == ENOENT) return std::optional<Found>();
  std::array<char, kAllBytes + 1> text;
  const ssize_t size = found.file.valid() ? read_all(found.file.get(), text) : -1;
  if (size > static_cast<ssize_t>(kAllBytes)) errno = EFBIG;
  if (size < 0 || size > static_cast<ssize_t>(kAllBytes)) {
    return Error{"can't read the claims beside " + shown_ + " (" + name_ +
                 "): " + reason_of(errno)};
  }
  if (size != static_cast<ssize_t>(kAllBytes)) return std::optional<Found>();
  size_t unread = 0;
  for (size_t i = 0; i < kSlots; ++i) {
    std::string_view slot(text.data() + i * kSlotBytes, kSlotBytes);
    slot = slot.substr(0, slot.find_last_not_of('\0') + 1);
    if (slot.empty()) continue;
    Result<Record> record = parse_record(slot, volume_, shown_);
    if (record) {
      found.records[i] = std::move(record).value();
    } else if (i > 0) {
      ++unread;
    }
  }
  // After a reboot no process of an earlier boot runs, and slot 0 was not synced.
  if (found.records[0] && found.records[0]->holder.boot_id != this_boot()) found.records[0].reset();
  found.damaged = unread == kSlots - 1;
  return std::optional(std::move(found));
}

// A process writes slot 0 as soon as it has the lock. So of entries of the same age slot 0 is the
// newest, and is applied last.
Result<void> ClaimSlots::bring_up(const std::optional<Found>& slots, Record* record) const {
  if (!slots) return {};
  if (slots->damaged) {
    return Error{shown_ + ": the claims beside it (" + name_ +
                 ") are damaged, and with them which epoch was served last is not known; restore "
                 "both from a backup, or remove both once no host uses the volume"};
  }
  for (const size_t i : {1, 2, 0}) {
    const std::optional<Record>& slot = slots->records[i];
    if (!slot || age_of(*slot) < age_of(*record)) continue;
    record->epoch = slot->epoch;
    record->order = slot->order;
    record->holder = slot->holder;
  }
  return {};
}

// In place, because a full pool has no room for another file. The slots are emptied one by one, so
// that a power failure damages at most one.
Result<void> ClaimSlots::clear() const {
  const FileDescriptor file(::openat(directory_, name_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 ||
      status.st_size != static_cast<off_t>(kAllBytes)) {
    return replace_file(directory_, name_, std::string(kAllBytes, '\0'), shown_, nullptr,
                        Outlasts::kPowerCut, Updates::kInPlace);
  }
  constexpr std::array<char, kSlotBytes> kEmpty{};
  for (size_t slot = 0; slot < kSlots; ++slot) {
    const ssize_t n =
        ::pwrite(file.get(), kEmpty.data(), kSlotBytes, static_cast<off_t>(slot * kSlotBytes));
    if (n != static_cast<ssize_t>(kSlotBytes) || ::fdatasync(file.get()) != 0) {
      return Error{"can't empty the claims beside " + shown_ + ": " + reason_of(errno)};
    }
  }
  return {};
}

Result<bool> ClaimSlots::write(const Record& record, Outlasts outlasts,
                               const std::optional<Found>& slots) const {
  Record short_one = record;
  short_one.reservations = {};
  const std::string text = format_record(short_one);
  if (!slots || text.size() > kSlotBytes) return false;
  std::array<char, kSlotBytes> page{};
  text.copy(page.data(), page.size());
  const auto& [note, first, second] = slots->records;
  const bool over_second = first && (!second || age_of(*second) < age_of(*first));
  const size_t slot = outlasts == Outlasts::kProcess ? 0 : over_second ? 2 : 1;
  const int file = slots->file.get();
  const ssize_t n = ::pwrite(file, page.data(), page.size(), static_cast<off_t>(slot * kSlotBytes));
  if (n >= 0 && n != static_cast<ssize_t>(page.size())) errno = ENOSPC;
  if (n != static_cast<ssize_t>(page.size()) ||
      (outlasts == Outlasts::kPowerCut && ::fdatasync(file) != 0)) {
    return Error{"can't write the claim beside " + shown_ + ": " + reason_of(errno)};
  }
  return true;
}

}  // namespace sluice::control
