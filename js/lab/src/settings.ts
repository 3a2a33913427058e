// The person's settings, from JupyterLab's editor.
import type { ISettingRegistry } from "@jupyterlab/settingregistry";
import { Signal } from "@lumino/signaling";

/** What a kernel decides. */
export type ForKernel = { explain?: unknown; cards?: unknown; panels?: boolean; advisors?: unknown };

export class Settings {
  readonly changed = new Signal<this, void>(this);
  private found: ISettingRegistry.ISettings | null = null;

  /** Read them; before that, and without a registry, they are what the schema says. */
  async load(registry: ISettingRegistry, id: string): Promise<void> {
    this.found = await registry.load(id);
    this.found.changed.connect(() => this.changed.emit());
    this.changed.emit();
  }

  get everyNotebook(): boolean {
    return this.value("everyNotebook", false);
  }

  get side(): "left" | "right" {
    return this.value("sidePanel", "right");
  }

  get panels(): "cell" | "sidebar" | "none" {
    return this.value("panels", "cell");
  }

  /** Whether fixes are offered at all. */
  get fixes(): boolean {
    return this.value("explain", "fix") === "fix";
  }

  /** What the person has set of that which a kernel decides; what is not set stays as the kernel's environment has it. */
  forKernel(): ForKernel {
    const user = this.found?.user ?? {};
    const given: ForKernel = {};
    for (const name of ["explain", "cards", "advisors"] as const) if (name in user) given[name] = user[name];
    if ("panels" in user) given["panels"] = user["panels"] !== "none";
    return given;
  }

  private value<T>(name: string, otherwise: T): T {
    return (this.found?.get(name).composite as T | undefined) ?? otherwise;
  }
}
