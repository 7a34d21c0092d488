#include "control/local/pool_marker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/record_text.h"
#include "base/safety_mutation.h"

namespace sluice::control {
namespace {

constexpr const char* kHeading = "sluice-pool 1";
constexpr const char* kUnknown = "-";
constexpr int kTries = 3;  // if another gateway writes the marker at the same time

std::string adopt_hint() {
  return "or, if the storage was replaced deliberately, confirm it with `sluicectl pool adopt` "
         "(in Kubernetes: raise the StoragePool's spec.adoptions by one)";
}

Identified refuse(std::optional<PoolMarker> marker, std::string why, bool foreign) {
  return {.marker = std::move(marker), .doubt = std::move(why), .foreign = foreign};
}

// For storage without any marker.
Result<Identified> identify_unmarked(MarkedStorage& storage, const ExpectedPool& expected) {
  const wire::PoolIdentity& identity = *expected.identity;
  if (mutation_disables(Guard::kMarker)) return Identified{.mark_is_due = true};
  if (!identity.marker().empty()) {
    return refuse({},
                  storage.shown() + " has no marker of the pool (" + storage.marker_name() +
                      "): the pool's storage is not there. " + storage.restore() + ", " +
                      adopt_hint(),
                  true);
  }
  const Result<std::string> missing = storage.missing_image(identity);
  if (!missing) return Error{missing.error()};
  if (!missing.value().empty()) {
    return refuse({},
                  storage.shown() + " has no marker of the pool, and lacks " + missing.value() +
                      ", which the pool has: this may be other storage. " + storage.restore() +
                      ", " + adopt_hint(),
                  false);
  }
  if (identity.images().empty()) {
    const Result<std::string> unknown = storage.unknown_image();
    if (!unknown) return Error{unknown.error()};
    if (!unknown.value().empty()) {
      return refuse({},
                    storage.shown() + " holds " + unknown.value() +
                        ", which is no volume of this pool: it may be storage of another system. "
                        "Remove the image, choose another directory, " +
                        adopt_hint(),
                    true);
    }
  }
  return Identified{.mark_is_due = true};
}

std::string difference(const MarkedStorage& storage, const PoolMarker& marker,
                       const ExpectedPool& expected) {
  const wire::PoolIdentity& identity = *expected.identity;
  const std::string id = storage.storage_id();
  if (marker.pool != expected.uid) return "is marked as the storage of pool " + marker.pool;
  if (!marker.filesystem.empty() && !id.empty() && marker.filesystem != id) {
    return "is in " + storage.kind() + ' ' + id + ", and its marker was written in " +
           storage.kind() + ' ' + marker.filesystem + ": it is a copy";
  }
  const bool expected_id = identity.marker().empty() || marker.id == identity.marker();
  // Another gateway has written a new marker, which the control plane is about to learn.
  const bool just_adopted =
      marker.adoptions > identity.adoptions() && marker.adoptions == identity.confirmed_adoptions();
  if (!expected_id && !just_adopted) {
    return "has marker " + marker.id + ", and the pool's is " + identity.marker();
  }
  return {};
}

// Whether the marker belongs to another existing pool of this node.
bool is_of_neighbour(const PoolMarker& marker, const ExpectedPool& expected) {
  return std::ranges::find(expected.others, marker.pool) != expected.others.end();
}

// Whether the marker of another pool is on storage without images, and this pool has none either.
Result<bool> is_unused(MarkedStorage& storage, const ExpectedPool& expected) {
  if (!expected.identity->marker().empty() || !expected.identity->images().empty()) return false;
  const Result<std::string> unknown = storage.unknown_image();
  if (!unknown) return Error{unknown.error()};
  return unknown.value().empty();
}

// Changes nothing: determines whether a marker must be written.
Result<Identified> compare_marker(MarkedStorage& storage, const ExpectedPool& expected) {
  const wire::PoolIdentity& identity = *expected.identity;
  const Result<FoundMarker> found = storage.find();
  if (!found) return Error{found.error()};
  const std::optional<PoolMarker>& marker = found.value().marker;
  std::string differs;
  if (marker) {
    differs = difference(storage, *marker, expected);
    // A copy within the file system has the same marker; the count shows whether it was confirmed.
    const bool confirmed = marker->adoptions >= identity.confirmed_adoptions();
    if (differs.empty() && confirmed) {
      return Identified{.marker = marker, .mark_is_due = !found.value().complete};
    }
  }
  if (marker && is_of_neighbour(*marker, expected)) {
    return refuse(marker,
                  storage.shown() + " is the storage of pool " + marker->pool +
                      ", which exists, too: a directory belongs to one pool. Give one of the pools "
                      "another directory, or delete it",
                  true);
  }
  if (identity.confirmed_adoptions() > identity.adoptions()) {
    return Identified{.mark_is_due = true};
  }
  if (!found.value().exists) return identify_unmarked(storage, expected);
  const Result<bool> unused = is_unused(storage, expected);
  if (!unused) return Error{unused.error()};
  if (unused.value()) return Identified{.mark_is_due = true};
  if (!marker) differs = "has a damaged marker (" + storage.marker_name() + ')';
  return refuse(marker,
                storage.shown() + ' ' + differs + ". " + storage.restore() + ", " + adopt_hint(),
                true);
}

// Writes the marker of identified storage again, because one of its copies is damaged or missing.
// The storage stays identified if that fails; the next comparison tries again.
Identified repair(MarkedStorage& storage, const PoolMarker& marker) {
  const Result<bool> written = storage.write(marker);
  if (written && written.value()) {
    log::warning("a damaged or missing copy of a pool's marker is written again",
                 {{"pool", marker.pool}, {"storage", storage.shown()}});
  }
  return Identified{.marker = marker};
}

// Unwritable storage is in doubt, not foreign: its volumes are served. If another gateway has
// written the marker, nothing needs to be written.
Result<Identified> mark(MarkedStorage& storage, const ExpectedPool& expected) {
  Result<Identified> compared = compare_marker(storage, expected);
  if (!compared || !compared.value().mark_is_due) return compared;
  if (compared.value().marker) return repair(storage, *compared.value().marker);
  const PoolMarker marker{.pool = expected.uid,
                          .id = storage.fresh_marker_id(),
                          .filesystem = storage.storage_id(),
                          .adoptions = expected.identity->confirmed_adoptions()};
  const Result<bool> written = storage.write(marker);
  if (!written) return refuse({}, "the pool can't be marked: " + written.error(), false);
  if (!written.value()) return compared;
  log::info("the pool's storage is marked", {{"pool", expected.uid},
                                             {"storage", storage.shown()},
                                             {"marker", marker.id},
                                             {"adoptions", marker.adoptions}});
  return Identified{.marker = marker};
}

}  // namespace

std::string format_marker(const PoolMarker& marker) {
  return fmt::format("{}\npool {}\nmarker {}\nfilesystem {}\nadoptions {}\n", kHeading, marker.pool,
                     marker.id, marker.filesystem.empty() ? kUnknown : marker.filesystem,
                     marker.adoptions);
}

std::optional<PoolMarker> parse_marker(std::string_view text) {
  RecordReader lines(text, kHeading);
  PoolMarker marker;
  marker.pool = lines.text("pool");
  marker.id = lines.text("marker");
  marker.filesystem = lines.text("filesystem");
  marker.adoptions = static_cast<uint32_t>(lines.number("adoptions", UINT32_MAX));
  if (!lines.complete()) return std::nullopt;
  if (marker.filesystem == kUnknown) marker.filesystem.clear();
  return marker;
}

Result<Identified> identify_pool(MarkedStorage& storage, const ExpectedPool& expected) {
  if (!expected.identity) {
    const Result<FoundMarker> found = storage.find();
    if (!found) return Error{found.error()};
    const std::optional<PoolMarker>& marker = found.value().marker;
    if (marker && marker->pool != expected.uid) {
      return refuse(marker, storage.shown() + " is marked as the storage of pool " + marker->pool,
                    true);
    }
    return Identified{.marker = marker};
  }
  Result<Identified> compared = compare_marker(storage, expected);
  if (!compared || !compared.value().mark_is_due) return compared;
  const Result<void> begun = storage.begin_marking();
  if (!begun && compared.value().marker) return Identified{.marker = compared.value().marker};
  if (!begun) return refuse({}, begun.error(), false);
  for (int tries = 0; tries < kTries; ++tries) {
    Result<Identified> marked = mark(storage, expected);
    if (!marked || !marked.value().mark_is_due) return marked;
  }
  return refuse({}, storage.shown() + ": others write its marker all the time; try again", false);
}

}  // namespace sluice::control
