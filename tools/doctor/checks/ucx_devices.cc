#include <uct/api/uct.h>

#include "tools/doctor/checks/world_checks.h"

namespace hvdlite::doctor {
namespace {

// The transports of one memory domain, such as a network card.
void AddDevices(uct_component_h component, const char* domain,
                std::vector<UcxDevice>& devices) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) {
    return;
  }
  uct_md_h opened = nullptr;
  const ucs_status_t status = uct_md_open(component, domain, config, &opened);
  uct_config_release(config);
  if (status != UCS_OK) return;
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(opened, &resources, &count) == UCS_OK) {
    for (unsigned i = 0; i < count; ++i) {
      if (resources[i].dev_type != UCT_DEVICE_TYPE_NET) continue;
      const std::string transport = resources[i].tl_name;
      devices.push_back({.transport = transport,
                         .device = resources[i].dev_name,
                         .fast = transport != "tcp"});
    }
    uct_release_tl_resource_list(resources);
  }
  uct_md_close(opened);
}

}  // namespace

std::optional<std::vector<UcxDevice>> UcxDevices() {
  std::vector<UcxDevice> devices;
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (uct_query_components(&components, &count) != UCS_OK) return devices;
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t attributes = {};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(components[i], &attributes) != UCS_OK) continue;
    std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (uct_component_query(components[i], &attributes) != UCS_OK) continue;
    for (const uct_md_resource_desc_t& domain : domains) {
      AddDevices(components[i], domain.md_name, devices);
    }
  }
  uct_release_component_list(components);
  return devices;
}

}  // namespace hvdlite::doctor
