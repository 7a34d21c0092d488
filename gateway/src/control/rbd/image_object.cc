#include "control_rbd/image_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backend/size_text.h"
#include "base/record_text.h"
#include "control/local/two_copies.h"
#include "control_rbd/rados_object.h"

namespace sluice::control {
namespace {

constexpr const char* kHeading = "sluice-rbd-image 1";
constexpr const char* kUnknown = "-";  // the id of a format 1 image
constexpr int kTries = 3;              // if another gateway records the image at the same time

struct Recorded {
  std::string id;
  uint64_t size = 0;
  uint32_t adoptions = 0;
  bool operator==(const Recorded&) const = default;
};

std::string format(const Recorded& image) {
  return seal(fmt::format("{}\nid {}\nsize {}\nadoptions {}\n", kHeading, image.id, image.size,
                          image.adoptions));
}

std::optional<Recorded> parse(const std::string& sealed) {
  const auto text = unseal(sealed);
  if (!text) return std::nullopt;
  RecordReader lines(*text, kHeading);
  Recorded image;
  image.id = lines.text("id");
  image.size = lines.number("size");
  image.adoptions = static_cast<uint32_t>(lines.number("adoptions", UINT32_MAX));
  if (!lines.complete()) return std::nullopt;
  return image;
}

std::string object_name(const std::string& location) { return "sluice.image." + location; }

// One attempt. nullopt: another gateway has written the record meanwhile.
Result<std::optional<Recorded>> compare(RadosObject& object, const std::string& image,
                                        const Recorded& present) {
  const Result<RadosObject::Found> found = object.read(kCopyBytes, kCopyBytes);
  if (!found) return Error{found.error()};
  Recorded wanted = present;
  if (found.value().text) {
    std::optional<Recorded> recorded = parse(*found.value().text);
    if (!recorded && found.value().copy) recorded = parse(*found.value().copy);
    const std::string confirm = "once you know that " + image +
                                " is the volume's image, remove the object with `rados rm` (" +
                                object.shown() +
                                "), or confirm the whole pool with `sluicectl pool adopt`";
    const bool adopted = recorded && recorded->adoptions < present.adoptions;
    if (!recorded) return Error{object.shown() + " is damaged; " + confirm};
    if (!adopted && recorded->id != present.id) {
      return Error{image + " is another image than the volume's: it has the id " + present.id +
                   ", recorded is " + recorded->id + "; put the image back, or " + confirm};
    }
    if (!adopted) wanted = {present.id, std::max(recorded->size, present.size), present.adoptions};
    if (found.value().is_complete() && *recorded == wanted) return recorded;
  }
  const Result<bool> written = object.replace(found.value(), format(wanted));
  if (!written) return Error{written.error()};
  return written.value() ? std::optional(wanted) : std::nullopt;
}

}  // namespace

Result<uint64_t> verify_image_id(const ImageObjects& where, const std::string& location,
                                 const rbd::ImageIdentity& present) {
  const std::string image = where.pool->name() + '/' + location;
  RadosObject object(where.pool, object_name(location));
  const Recorded now{present.id.empty() ? kUnknown : present.id, present.size, where.adoptions};
  for (int tries = 0; tries < kTries; ++tries) {
    const Result<std::optional<Recorded>> recorded = compare(object, image, now);
    if (!recorded) return Error{recorded.error()};
    if (recorded.value()) return recorded.value()->size;
  }
  return Error{object.shown() + " is being written by others; try again"};
}

Result<void> verify_image(const ImageObjects& where, const std::string& location,
                          const rbd::ImageIdentity& present) {
  const Result<uint64_t> size = verify_image_id(where, location, present);
  if (!size) return Error{size.error()};
  if (present.size >= size.value()) return {};
  return Error{where.pool->name() + '/' + location + " is " + backend::format_size(present.size) +
               ", recorded are " + backend::format_size(size.value()) +
               ": its end is missing; restore the image from a backup"};
}

Result<void> forget_image(const ImageObjects& where, const std::string& location) {
  return RadosObject(where.pool, object_name(location)).remove();
}

}  // namespace sluice::control
