#include "control/desired_file.h"

#include <optional>
#include <string_view>

#include "base/limits.h"
#include "base/record_text.h"
#include "control/local/files.h"

namespace sluice::control {
namespace {

constexpr const char* kName = "desired-state";
constexpr std::string_view kFormat = "sluice-desired ";
constexpr std::string_view kHeading = "sluice-desired 2\n";
constexpr std::string_view kHeading1 = "sluice-desired 1";

// The message in the text of an undamaged file.
std::optional<std::string_view> message_of(std::string_view text) {
  if (text.starts_with(kHeading1)) return unseal_after_heading(text, kHeading1);
  const std::optional<std::string_view> body = unseal(text);
  if (!body || body->size() < kHeading.size()) return std::nullopt;
  return body->substr(kHeading.size());
}

}  // namespace

std::string format_desired(const Snapshot& snapshot) {
  wire::StreamUpdate update;
  update.set_version(snapshot.version);
  update.set_full(true);
  update.set_digest(snapshot.digest);
  for (const ObjectPtr& object : *snapshot.objects) *update.add_put() = *object;
  return seal(std::string(kHeading) + update.SerializeAsString());
}

Result<void> parse_desired(const std::string& text, const std::string& path, Desired* desired,
                           const std::string& gateway) {
  const auto broken = [&path](const std::string& what) {
    return Error{path + ' ' + what + "; remove it, the control plane sends its contents again"};
  };
  if (!text.starts_with(kFormat)) return broken("is no desired state");
  if (!text.starts_with(kHeading) && !text.starts_with(kHeading1)) {
    return broken("was written by another release");
  }
  const std::optional<std::string_view> body = message_of(text);
  if (!body) return broken("is damaged (checksum)");
  wire::StreamUpdate update;
  if (!update.ParseFromArray(body->data(), static_cast<int>(body->size()))) {
    return broken("is damaged (no message)");
  }
  if (!update.full() || update.more()) return broken("is damaged (no whole state)");
  for (const wire::DesiredObject& object : update.put()) {
    // empty: no settings, or a control plane that does not send the name
    const std::string& whose = object.settings().gateway();
    if (!gateway.empty() && !whose.empty() && whose != gateway) {
      std::string what = "is of gateway ";
      what.append(whose).append(", and this one is ").append(gateway);
      return broken(what);
    }
  }
  const Result<Desired::Taken> taken = desired->take(std::move(update));
  if (!taken) return broken("is damaged (" + taken.error() + ")");
  return {};
}

std::string DesiredFile::path() const { return directory_ + '/' + kName; }

Result<void> DesiredFile::save(const Snapshot& snapshot) const {
  const Result<FileDescriptor> directory = open_directory(directory_);
  if (!directory) return Error{directory.error()};
  return replace_file(directory.value().get(), kName, format_desired(snapshot), path());
}

Result<bool> DesiredFile::load(Desired* desired) const {
  const Result<FileDescriptor> directory = open_directory(directory_);
  if (!directory) return Error{directory.error()};
  const Result<std::optional<std::string>> text =
      read_small_file(directory.value().get(), kName, limits::kMaxDesiredBytes * 2, path());
  if (!text) return Error{text.error()};
  if (!text.value()) return false;
  const Result<void> parsed = parse_desired(*text.value(), path(), desired, gateway_);
  if (!parsed) return Error{parsed.error()};
  return true;
}

}  // namespace sluice::control
