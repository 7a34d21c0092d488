#include "control/lun_numbers.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/record_text.h"
#include "control/local/files.h"

namespace sluice::control {
namespace {

constexpr const char* kName = "lun-numbers";
constexpr std::string_view kHeading = "sluice-lun-numbers 2";
constexpr std::string_view kHeading1 = "sluice-lun-numbers 1";  // its seal follows it

// The lines of an undamaged file.
std::optional<std::string_view> lines_of(std::string_view text) {
  if (text.starts_with(kHeading1)) return unseal_after_heading(text, kHeading1);
  const std::optional<std::string_view> body = unseal(text);
  if (!body) return std::nullopt;
  const RecordReader record(*body, kHeading);
  return record.bad() ? std::nullopt : std::optional(record.rest());
}

bool over(int64_t left, int64_t now) {
  // If the clock was set back, the time counts from now.
  return left != 0 && now - std::min(left, now) >= limits::kLunNumberHeld;
}

std::string time_text(int64_t seconds) {
  const std::time_t at = seconds;
  std::tm parts{};
  char text[32] = {};
  if (::gmtime_r(&at, &parts) == nullptr) return std::to_string(seconds);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

Result<void> LunNumbers::load(const Objects& last, int64_t now) {
  const std::string path = directory_ + '/' + kName;
  std::string problem;
  const std::lock_guard lock(mutex_);
  const Result<FileDescriptor> directory = open_directory(directory_);
  if (!directory) {
    problem = directory.error();
  } else {
    const Result<std::optional<std::string>> text =
        read_small_file(directory.value().get(), kName, limits::kMaxDesiredBytes, path);
    if (!text) {
      problem = text.error();
    } else if (text.value() && !parse(*text.value())) {
      problem = path + " is damaged; until " + time_text(now + limits::kLunNumberHeld) +
                " have hosts rescan before a number is given to another volume";
    }
  }
  // Hosts saw these until now, and may use the devices until they see the next state.
  for (auto at = last.first_of(wire::OBJECT_KIND_TARGET); at != last.end(); ++at) {
    if (!(*at)->has_target()) continue;
    for (const wire::DesiredLun& lun : (*at)->target().luns()) {
      Entry& entry = targets_[(*at)->target().iqn()][lun.id()];
      // A number reserved for another volume was never shown for this one, whatever was desired.
      if (!entry.volume.empty() && entry.volume != lun.volume_uid() && !over(entry.left, now))
        continue;
      entry = {lun.volume_uid(), now};
      changed_ = true;
    }
  }
  if (!problem.empty()) return Error{problem};
  return {};
}

std::string LunNumbers::held(const std::string& iqn, uint64_t lun, const std::string& volume,
                             int64_t now) const {
  const std::lock_guard lock(mutex_);
  const auto target = targets_.find(iqn);
  if (target == targets_.end()) return {};
  const auto at = target->second.find(lun);
  if (at == target->second.end() || at->second.volume == volume || over(at->second.left, now)) {
    return {};
  }
  const int64_t left = at->second.left == 0 ? now : std::min(at->second.left, now);
  return "it was volume " + at->second.volume +
         ", and hosts may still hold that one's device: take another number, or wait until " +
         time_text(left + limits::kLunNumberHeld);
}

void LunNumbers::shown(const std::string& iqn, const Luns& luns, int64_t now) {
  const std::lock_guard lock(mutex_);
  if (luns.empty() && !targets_.contains(iqn)) return;
  Entries& entries = targets_[iqn];
  for (auto& [number, entry] : entries) {
    if (entry.left != 0 || luns.contains(number)) continue;
    entry.left = now;
    changed_ = true;
  }
  for (const auto& [number, volume] : luns) entries[number] = {volume, 0};
}

Result<void> LunNumbers::save(int64_t now) {
  std::string kept;
  {
    const std::lock_guard lock(mutex_);
    if (!changed_) return {};
    changed_ = false;
    for (auto& [iqn, entries] : targets_) {
      std::erase_if(entries, [now](const auto& entry) { return over(entry.second.left, now); });
    }
    std::erase_if(targets_, [](const auto& target) { return target.second.empty(); });
    kept = text(now);
  }
  const Result<FileDescriptor> directory = open_directory(directory_);
  const Result<void> saved =
      directory ? replace_file(directory.value().get(), kName, kept, directory_ + '/' + kName)
                : Result<void>(Error{directory.error()});
  if (!saved) {
    const std::lock_guard lock(mutex_);
    changed_ = true;
  }
  return saved;
}

// One line per number that is no longer shown: time, number, volume, IQN.
std::string LunNumbers::text(int64_t now) const {
  std::string lines = std::string(kHeading) + '\n';
  for (const auto& [iqn, entries] : targets_) {
    for (const auto& [number, entry] : entries) {
      if (entry.left == 0) continue;
      lines += std::to_string(std::min(entry.left, now)) + ' ' + std::to_string(number) + ' ' +
               entry.volume + ' ' + iqn + '\n';
    }
  }
  return seal(std::move(lines));
}

bool LunNumbers::parse(const std::string& text) {
  const std::optional<std::string_view> body = lines_of(text);
  if (!body) return false;
  std::map<std::string, Entries> targets;
  std::string_view rest = *body;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    WordReader words(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    Entry entry;
    entry.left = static_cast<int64_t>(words.number(INT64_MAX));
    const uint64_t number = words.number(limits::kMaxLunNumber);
    entry.volume = words.word();
    const std::string iqn(words.word());
    if (!words.complete()) return false;
    targets[iqn][number] = std::move(entry);
  }
  targets_ = std::move(targets);
  return true;
}

}  // namespace sluice::control
