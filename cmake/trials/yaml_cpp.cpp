// SPDX-License-Identifier: GPL-2.0-or-later
#include <yaml-cpp/yaml.h>

int main()
{
    return YAML::Load("[1]").size() == 1 ? 0 : 1;
}
