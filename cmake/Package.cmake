# SPDX-License-Identifier: GPL-2.0-or-later
# `cpack -G DEB` in a build directory builds the Debian package: gpuq, or gpuq-client (preset client). cmake/DebianLayout.cmake adapts it to Debian's
# policy; contrib/package/lintian-overrides lists and justifies the remaining lintian findings.
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_NAME gpuq)
set(CPACK_PACKAGE_CONTACT "gpuq maintainers <gpuq@localhost.localdomain>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/DebianLayout.cmake)
set(CPACK_GPUQ_PACKAGING ${PROJECT_SOURCE_DIR}/contrib/package)

set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
if(GPUQ_CLIENT)
  set(CPACK_PACKAGE_NAME gpuq-client)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "openssh-client, libssh-4") # libssh is loaded when needed
  set(CPACK_DEBIAN_PACKAGE_CONFLICTS "gpuq")
  set(CPACK_DEBIAN_PACKAGE_REPLACES "gpuq")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run programs on the GPUs of a Slurm cluster, from a laptop")
  set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"gpuq starts a program on a GPU of a Slurm cluster, shows its output here and
exits with its status. This package is for a machine outside the cluster: every
command runs on a login host that has the package gpuq, over ssh connections
that may break. It needs no Slurm.")
else()
  # Required by `run` on a cluster, and by `--host`; then packages for `cluster up`, `connect` and the examples.
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "slurm-client, openssh-client, libssh-4")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "munge, slurmctld, slurmd, slurmdbd, slurm-wlm-mysql-plugin, mariadb-server-core, mariadb-client-core, \
openssh-server, python3-numpy, python3-sklearn")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run programs on the GPUs of a Slurm cluster, from a terminal")
  set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"gpuq starts a program on a GPU of a Slurm cluster, shows its output here and
exits with its status. The run does not need the terminal: it continues when
that is closed or the network fails, and can be attached to again from any
login host.

There is no daemon of its own: Slurm does scheduling, authentication and
accounting. On a machine without Slurm, `gpuq cluster up` starts a real one,
for one user or for all users of it.")
endif()
include(CPack)
